"""A package that pip installs without a network: its build backend is a file of its own."""

BACKEND = """
import base64, hashlib, pathlib, zipfile

NAME, VERSION = "judges", "1.0"

def _wheel(folder, files):
    about = f"{NAME}-{VERSION}.dist-info"
    lines = ["Metadata-Version: 2.1", f"Name: {NAME}", f"Version: {VERSION}", "Requires-Dist: coral>=0.3", ""]
    files[f"{about}/METADATA"] = "\\n".join(lines)
    files[f"{about}/WHEEL"] = "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
    rows = []
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(text.encode())}")
    files[f"{about}/RECORD"] = "\\n".join([*rows, f"{about}/RECORD,,", ""])
    wheel = f"{NAME}-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder) / wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return wheel

def build_wheel(folder, settings=None, metadata=None):
    sources = pathlib.Path("src")
    return _wheel(folder, {str(path.relative_to(sources)): path.read_text() for path in sources.rglob("*.py")})

def build_editable(folder, settings=None, metadata=None):
    return _wheel(folder, {"judges.pth": str(pathlib.Path("src").resolve()) + "\\n"})

def get_requires_for_build_wheel(settings=None):
    return []

get_requires_for_build_editable = get_requires_for_build_wheel
"""

PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "judges"
version = "1.0"
dependencies = ["coral>=0.3"]
"""


def package(folder: str, module: str) -> dict[str, str]:
    """Return the files of a package below `folder`, which depends on `coral`. `module`: the text of `judges.grade`."""
    files = {
        "backend.py": BACKEND,
        "pyproject.toml": PROJECT,
        "src/judges/__init__.py": "",
        "src/judges/grade.py": module,
    }
    return {f"{folder}/{name}": text for name, text in files.items()}
