"""PolicyFile: one file is one revision, read strictly and written back the same."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from policy.rulechecks import MAX_RULES, Problem
from policy.rulespec import RuleSpec, read_rule
from registry import manifestfiles, yamlwriting
from registry.fields import Fields, ManifestError
from registry.manifestfiles import ManifestFile
from registry.manifestshape import API_VERSION

KIND = "Policy"
MAX_NOTE = 200


class PolicyFileError(ManifestError):
    """A file that is no policy: where (a path such as spec.rules[0].when), why, and on which line if known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFile:
    """The rules of a file, and where in it they stand."""

    rules: list[RuleSpec]
    note: str = ""
    file: ManifestFile = field(repr=False)

    def located(self, problem: Problem) -> PolicyFileError:
        """A problem of the rules as a place in the file."""
        path = "spec.rules" if problem.place is None else f"spec.rules[{problem.place}].{problem.field}"
        return _located(self.file, ManifestError(path, problem.reason))


def read(text: str) -> list[RuleSpec]:
    """The rules of a text in YAML or JSON; a PolicyFileError says where it is not a policy."""
    return parse(text).rules


def parse(text: str) -> PolicyFile:
    """A text in YAML or JSON, with its note."""
    try:
        return _parsed(manifestfiles.read(text.encode("utf-8", "surrogatepass")))
    except PolicyFileError:
        raise
    except ManifestError as error:
        raise PolicyFileError(error.path, error.reason, error.line) from None


def read_file(path: Path) -> PolicyFile:
    """A file in YAML or JSON, with its note."""
    try:
        return _parsed(manifestfiles.read_file(path))
    except PolicyFileError:
        raise
    except ManifestError as error:
        raise PolicyFileError(error.path, error.reason, error.line) from None


def document(rules: Sequence[RuleSpec], *, note: str = "") -> dict[str, Any]:
    """The rules as a file holds them."""
    metadata: dict[str, Any] = {"metadata": {"note": note}} if note else {}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        **metadata,
        "spec": {"rules": [rule.as_json() for rule in rules]},
    }


def written(rules: Sequence[RuleSpec], *, note: str = "") -> str:
    """The YAML that reads back equal."""
    return yamlwriting.write(document(rules, note=note))


def _parsed(file: ManifestFile) -> PolicyFile:
    try:
        top = Fields(file.document, "", ("apiVersion", "kind", "metadata", "spec"))
        top.choice("apiVersion", (API_VERSION,))
        top.choice("kind", (KIND,))
        metadata = Fields(top.raw("metadata", {}), "metadata", ("note",))
        note = metadata.text("note", "", most=MAX_NOTE).strip()
        spec = Fields(top.need("spec"), "spec", ("rules",))
        spec.need("rules")
        return PolicyFile(rules=list(_rules(spec)), note=note, file=file)
    except ManifestError as error:
        raise _located(file, error) from None


def _rules(spec: Fields) -> Iterator[RuleSpec]:
    seen: dict[str, str] = {}
    for path, item in spec.items("rules", most=MAX_RULES):
        rule = read_rule(item, path)
        if rule.name in seen:
            raise ManifestError(f"{path}.name", f"is the name of {seen[rule.name]} already")
        seen[rule.name] = path
        yield rule


def _located(file: ManifestFile, error: ManifestError) -> PolicyFileError:
    placed = file.located(error)
    return PolicyFileError(placed.path, placed.reason, placed.line)
