"""Numbers as text."""

from __future__ import annotations

import math

_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def count_text(value: int) -> str:
    """The shortest exact text of a count: 10⁴, 2×10⁶, 12,345."""
    value = int(value)
    power = len(str(value)) - 1
    lead, rest = divmod(value, 10**power) if value > 0 else (0, 1)
    if power >= 4 and rest == 0:
        tens = "10" + str(power).translate(_SUPERSCRIPTS)
        return tens if lead == 1 else f"{lead}×{tens}"
    return f"{value:,}"


def number_text(value: float) -> str:
    """Three significant digits, with grouped thousands: 0.0123, 1.23, 12.3, 1,230."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if not 1e-9 <= abs(value) < 1e15:
        return f"{value:.3g}"
    digits = 2 - math.floor(math.log10(abs(value)))
    rounded = round(float(value), digits)  # that of a NumPy number may be off by one
    # rounding may add a digit: 9.996 becomes 10.0, not 10.00
    digits = 2 - math.floor(math.log10(abs(rounded)))
    return f"{rounded:,.{max(digits, 0)}f}"
