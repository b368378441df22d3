"""Says by how much an attempt differs from the one that it was compared with, relative to the gain so far and to the
noise. It imports next to nothing, for `coral eval` uses it."""

from dataclasses import dataclass

from attempts.record import Attempt, Verdict

NEGLIGIBLE = 1e-6  # share of a score: a smaller difference is practically none


@dataclass(frozen=True, slots=True)
class Scale:
    """`gain`: the fleet's so far over the seed; `noise`: one standard deviation of grades; both 0 where there is none,
    or where it is not known. `seed`: the number of the present seed."""

    gain: float = 0.0
    noise: float = 0.0
    seed: int = 0

    def of(self, attempt: Attempt) -> str:
        """The attempt's difference from what its verdict compares it with; empty where it was compared with nothing."""
        delta, score = attempt.delta, attempt.score
        if delta is None or score is None:
            return ""
        other = "the seed" if attempt.against == self.seed else f"#{attempt.against}"
        parts = [f"{delta:+.6g} against {other}"]
        if attempt.verdict is Verdict.TIED and abs(delta) <= NEGLIGIBLE * max(1.0, abs(score)):
            return f"{parts[0]}, practically the same"
        if self.gain > 0:
            parts.append(f"{abs(delta) / self.gain:.2g} of the gain so far")
        if self.noise > 0:
            parts.append(f"{abs(delta) / self.noise:.2g} times the noise")
        return ", ".join(parts)

    def data(self) -> dict[str, object]:
        return {"gain": self.gain, "noise": self.noise, "seed": self.seed}
