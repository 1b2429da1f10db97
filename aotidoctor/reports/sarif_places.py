"""Where the results of a SARIF log point: files, members nested in their package, frames of a stack."""

from __future__ import annotations

from dataclasses import dataclass, field

from aotidoctor.model.evidence import Evidence, FileSource, RunSource
from aotidoctor.model.localization import Localization
from aotidoctor.model.report import Report
from aotidoctor.reports import view
from aotidoctor.reports.places import is_member, place_of, uri
from aotidoctor.reports.text import one_line

FRAMES = 60

Node = dict[str, object]


@dataclass(slots=True)
class Places:
    """Locations of one run; files are numbered as they are met."""

    report: Report
    files: dict[tuple[str, bool], int] = field(default_factory=dict)

    def artifacts(self) -> list[Node]:
        """The files that were met."""
        return [self._artifact(file, member=member) for file, member in self.files]

    def _index(self, file: str, *, member: bool) -> int:
        """Number of a file; a member comes after the package that it lies in."""
        if member:
            self._index(self.report.case.artifact.path, member=False)
        return self.files.setdefault((file, member), len(self.files))

    def location(self, finding: Evidence | None, subject: str | None) -> Node:
        """A physical place always, because alerts need one; the subject and the run by name."""
        names: list[Node] = [{"name": one_line(subject, 300)}] if subject else []
        source = finding.source if finding is not None else None
        if isinstance(source, RunSource):
            place = view.source_text(source)
            names.append({"name": place, "fullyQualifiedName": f"{source.run}/{source.stream}"})
        physical = self._physical(place_of(self.report, finding) if finding is not None else None)
        return {"physicalLocation": physical} | ({"logicalLocations": names} if names else {})

    def stack(self, place: Localization) -> Node:
        """The native stack, innermost first; frames inside the package with their line."""
        frames: list[Node] = []
        for frame in place.frames[:FRAMES]:
            name = one_line(frame.function or "?", 400)
            location: Node = {"message": {"text": name}, "logicalLocations": [{"name": name}]}
            if frame.member is not None:
                source = FileSource(file=frame.member, line=frame.line)
                location["physicalLocation"] = self._physical(source)
            module = {"module": one_line(frame.library, 400)} if frame.library else {}
            frames.append({"location": location, **module})
        return {"message": {"text": f"Native stack{f' ({place.how})' if place.how else ''}"}, "frames": frames}

    def _physical(self, source: FileSource | None) -> Node:
        package = self.report.case.artifact.path or "aotidoctor"
        file = source.file if source is not None else package
        member = is_member(self.report.case.artifact, file)
        place: Node = {"uri": uri(file), "index": self._index(file, member=member)}
        if not member and not file.startswith("/"):
            place["uriBaseId"] = "SRCROOT"
        line = source.line if source is not None else None
        # Alerts must have a line: the first stands for the file as a whole.
        region: Node = {"startLine": max(line or 1, 1)}
        if source is not None and source.column:
            region["startColumn"] = source.column
        return {"artifactLocation": place, "region": region}

    def _artifact(self, file: str, *, member: bool) -> Node:
        location: Node = {"uri": uri(file)}
        if member:
            parent = self.files[self.report.case.artifact.path, False]
            return {"location": location, "parentIndex": parent}
        if not file.startswith("/"):
            location["uriBaseId"] = "SRCROOT"
        found = self.report.case.artifact
        if file != found.path or found.sha256 is None:
            return {"location": location}
        return {"location": location, "length": found.size, "hashes": {"sha-256": found.sha256}}
