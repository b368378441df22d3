"""The page names every module of the application, so that a browser asks for all of them at once."""

import re

from coral.web.assets import APPLICATION, MODULES, PAGE, STATIC, assets, imported_by, open_paths

SCRIPT = "/vendor/uplot-1.6.32.iife.min.js"  # no module


def test_the_page_names_each_module_once() -> None:
    page = assets()[PAGE].content
    files = {"/" + path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*.*js")}
    named = [name.decode() for name in re.findall(rb'rel="modulepreload" href="([^"]+)"', page)]
    assert sorted(named) == sorted(files - {APPLICATION, SCRIPT})
    assert MODULES not in page
    assert set(named) <= open_paths()


def test_imports_are_followed_from_module_to_module() -> None:
    contents = {
        "/app.js": b'import { a } from "./pages/a.js";\nimport "./base.js";\nconst text = "./none.js";\n',
        "/base.js": b'export { x,\n  y } from "./vendor/x.mjs";\n',
        "/pages/a.js": b'// import { z } from "./z.js";\nimport { b } from "../base.js";\nimport c from "../app.js";\n',
        "/vendor/x.mjs": b'import{h}from"./y.mjs";export const x = 1;',
        "/vendor/y.mjs": b"",
    }
    wanted = ["/pages/a.js", "/base.js", "/vendor/x.mjs", "/vendor/y.mjs"]
    assert imported_by("/app.js", contents) == wanted
