"""The report as Markdown, with the figures beside it."""

from __future__ import annotations

from analysis import claims, tables
from analysis.report import Report, Section


def render(report: Report) -> str:
    text = ["# lloydbench report\n"]
    text += [f"Not read: {reason}\n" for reason in report.unread]
    if len(report.sections) > 1:
        titles = [f"- {section.title} ({section.folder})" for section in report.sections]
        text.append("\n".join(titles) + "\n")
    for section in report.sections:
        text += _run(section)
    counts = claims.counts(report.judged)
    text.append(f"## Claims of the studies: {counts}\n")
    for study in report.studies:
        text.append(f"### {study.name}\n")
        text.append(tables.claims_table(study.judged))
    text.append("## Published numbers and these runs'\n")
    for study in report.studies:
        for name, header, rows in study.tables:
            text.append(f"### {study.name}: {name}\n")
            text.append(tables.markdown(header, rows, {*header} & {"published", "here"}))
    text.append(f"Written by `{report.command}`.\n")
    return "\n".join(text)


def _run(section: Section) -> list[str]:
    text = [f"## {section.title}\n"]
    text.append(f"{section.environment}. Run directory: `{section.folder}`.\n")
    text.append(f"Again: `{section.command}`\n")
    text += [f"Note: {warning}\n" for warning in section.warnings]
    for figure in section.figures:
        if not figure.stem:
            text.append(f"Figure `{figure.name}` is not drawn: {figure.message}.\n")
            continue
        text.append(f"![{figure.name}: {section.title}]({figure.stem}.png)\n")
        text.append(f"[{figure.name}.svg]({figure.stem}.svg), [rows]({figure.stem}.csv)\n")
    text.append(f"### Medians: {section.ok:,} of {section.points:,} points\n")
    if section.ok:
        over = f"; speedup over `{section.baseline}`" if section.baseline else ""
        text.append(f"Medians with 95% intervals{over}.\n")
        header, rows = section.medians
        text.append(tables.markdown(header, rows, {*header} - {"version", "precision"}))
    if section.missing:
        text.append(f"### Without result: {len(section.missing):,} points\n")
        text.append(tables.markdown(["point", "status", "reason"], section.missing, set()))
    text.append("### Environment\n")
    text.append(tables.markdown(["what", "value"], [list(fact) for fact in section.facts], set()))
    return text
