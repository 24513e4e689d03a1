"""The public conformance files for JSON parsers (nst/JSONTestSuite), read where they lie: they are not ours to copy.

TOOLWISE_JSONTESTSUITE=path/to/jsontestsuite.tar.gz scripts/check tests/core/test_json_suite.py
"""

import os
import tarfile

import pytest

from toolwise.core import jsonio
from toolwise.core.errors import InvalidArguments, MalformedCall

WHERE = os.environ.get("TOOLWISE_JSONTESTSUITE")

#: Of the files that a parser may accept or refuse, those that say one finite, bounded value and nothing else.
ACCEPTED = {
    "i_number_double_huge_neg_exp.json",
    "i_number_real_underflow.json",
    "i_number_too_big_neg_int.json",
    "i_number_too_big_pos_int.json",
    "i_number_very_big_negative_int.json",
}
#: Files that a parser should accept and that two parsers read differently.
REFUSED = {"y_object_duplicated_key.json", "y_object_duplicated_key_and_value.json"}


@pytest.mark.case("A23")
@pytest.mark.skipif(WHERE is None, reason="set TOOLWISE_JSONTESTSUITE to the archive of the suite")
def test_the_public_conformance_files_are_accepted_and_refused_as_listed() -> None:
    assert WHERE is not None
    accepted, refused = set(), set()
    with tarfile.open(WHERE) as suite:
        for member in suite:
            if not member.name.endswith(".json"):
                continue
            file, name = suite.extractfile(member), member.name.rpartition("/")[2]
            assert file is not None
            try:
                jsonio.loads(file.read())
                accepted.add(name)
            except (MalformedCall, InvalidArguments):
                refused.add(name)
    assert len(accepted) + len(refused) == 318
    assert {name for name in accepted if name[0] == "n"} == set()
    assert {name for name in refused if name[0] == "y"} == REFUSED
    assert {name for name in accepted if name[0] == "i"} == ACCEPTED
