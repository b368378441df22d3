"""Says by how much an attempt differs from the one that it was compared with, also in relation to the gain so far and
to the noise. The module imports next to nothing, since `coral eval` imports it."""

from dataclasses import dataclass

from attempts.record import Attempt, Verdict

NEGLIGIBLE = 1e-6  # share of a score: a smaller difference is practically none


@dataclass(frozen=True, slots=True)
class Scale:
    """What differences of scores are related to. `gain`: by how much the fleet's lead is better than the seed; `noise`:
    the standard deviation of a grade; both are 0 if there is none or it is not known. `seed`: the number of the present
    seed's attempt."""

    gain: float = 0.0
    noise: float = 0.0
    seed: int = 0

    def of(self, attempt: Attempt) -> str:
        """Return in words the difference between the attempt and the one that its verdict compares it with; empty if it
        was compared with none."""
        delta, score = attempt.delta, attempt.score
        if delta is None or score is None:
            return ""
        other = "the seed" if attempt.against == self.seed else f"#{attempt.against}"
        parts = [f"{delta:+.6g} against {other}"]
        if attempt.verdict is Verdict.TIED and abs(delta) <= NEGLIGIBLE * abs(score):
            return f"{parts[0]}, practically the same"
        if self.gain > 0:
            parts.append(f"{abs(delta) / self.gain:.2g} of the gain so far")
        if self.noise > 0:
            parts.append(f"{abs(delta) / self.noise:.2g} times the noise")
        return ", ".join(parts)

    def data(self) -> dict[str, object]:
        return {"gain": self.gain, "noise": self.noise, "seed": self.seed}
