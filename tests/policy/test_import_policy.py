"""Policy is code as well as clicks: a file becomes a revision, once, and a revision becomes the file again."""

import io
import json
from pathlib import Path

import pytest
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command

from audit.models import Event
from policy import policyfile, revisions
from policy.models import Revision

pytestmark = pytest.mark.django_db

FILE = """\
apiVersion: placet.dev/v1
kind: Policy
metadata: {note: the first one}
spec:
  rules:
    - name: small refunds go through
      tools: ["Payments.Refund"]
      when: input.amount <= 100.0
      effect: allow
    - name: writes need a person
      riskAtLeast: high
      effect: ask
      ask: {approvers: payers, quorum: 2, decideWithin: 10m, runWithin: 10m}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(FILE)
    return path


@pytest.fixture
def payers() -> Group:
    return Group.objects.create(name="payers")


def run(*arguments: object) -> list[str]:
    out = io.StringIO()
    command, *rest = arguments
    call_command(str(command), *map(str, rest), stdout=out)
    return out.getvalue().splitlines()


def refused(*arguments: object) -> str:
    with pytest.raises(CommandError) as caught:
        run(*arguments)
    return str(caught.value)


def test_a_file_becomes_a_draft_and_its_oddities_are_told(file: Path) -> None:
    assert run("import_policy", file) == [
        "drafted: revision 1",
        "warning: Rule 'small refunds go through': there is no toolkit Payments yet.",
        "warning: Rule 'writes need a person' asks the group payers, which does not exist.",
    ]
    draft = Revision.objects.get()
    assert (draft.state, draft.note) == ("draft", "the first one")
    assert revisions.rules_of(draft) == policyfile.read(FILE)
    assert Event.objects.get(subject_kind="policy").actor == "shell"


def test_the_same_rules_make_no_second_revision(file: Path, payers: Group) -> None:
    run("import_policy", file)
    assert run("import_policy", file)[0] == "unchanged: revision 1"
    file.write_text(FILE.replace("100.0", "200.0"))
    assert run("import_policy", file)[0] == "drafted: revision 2"
    file.write_text(FILE.replace("10m", "600s") + "# the same in other words\n")
    assert run("import_policy", file)[0] == "unchanged: revision 1"
    assert Revision.objects.count() == 2


def test_a_file_can_be_made_live_at_once_and_again_later(file: Path, payers: Group) -> None:
    assert run("import_policy", file, "--activate")[0] == "drafted: revision 1, live now"
    assert run("import_policy", file, "--activate")[0] == "unchanged: revision 1, live already"
    file.write_text(FILE.replace("100.0", "200.0"))
    assert run("import_policy", file, "--activate")[0] == "drafted: revision 2, live now"
    file.write_text(FILE)
    assert run("import_policy", file, "--activate")[0] == "unchanged: revision 1, live now"
    live = revisions.live()
    assert live is not None
    assert live.number == 1


def test_what_cannot_become_live_is_not_imported_at_all(file: Path) -> None:
    told = refused("import_policy", file, "--activate")
    assert "asks the group payers, which does not exist" in told
    assert told.endswith("Nothing was imported.")
    assert not Revision.objects.exists()
    assert not Event.objects.filter(subject_kind="policy").exists()


@pytest.mark.parametrize(
    ("old", "new", "line", "told"),
    [
        ("effect: allow", "effect: permit", 9, "spec.rules[0].effect: must be one of allow, deny, ask"),
        ("input.amount <= 100.0", "input.amount <=", 8, "spec.rules[0].when: "),
        ("input.amount <= 100.0", "'false'", 8, "spec.rules[0].when: "),
        ("riskAtLeast", "risk", 11, "spec.rules[1].risk: is not a known field"),
        ("apiVersion", "{", 1, "YAML"),
    ],
)
def test_a_bad_file_is_refused_with_its_line_and_nothing_is_written(
    file: Path, old: str, new: str, line: int, told: str
) -> None:
    file.write_text(FILE.replace(old, new, 1))
    said = refused("import_policy", file)
    if line > 1:
        assert said.startswith(f"{file}:{line}: ")
        assert told in said
    assert said.endswith(". Nothing was imported.")
    assert not Revision.objects.exists()


def test_a_file_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    assert refused("import_policy", tmp_path / "none.yaml").startswith(f"{tmp_path / 'none.yaml'}: No such file")


def test_export_gives_back_what_imports_unchanged(file: Path, payers: Group) -> None:
    run("import_policy", file, "--activate")
    text = "\n".join(run("export_policy")) + "\n"
    parsed = policyfile.parse(text)
    assert (parsed.rules, parsed.note) == (policyfile.read(FILE), "the first one")
    file.write_text(text)
    assert run("import_policy", file)[0] == "unchanged: revision 1"
    document = json.loads("\n".join(run("export_policy", 1, "--json")))
    assert policyfile.read(json.dumps(document)) == policyfile.read(FILE)


def test_export_of_what_is_not_there_is_refused() -> None:
    assert refused("export_policy") == "No policy revision is live."
    assert refused("export_policy", 7) == "There is no policy revision 7."
