"""The documents for Python are those that docs/build.py makes, and their examples run."""

import doctest
import importlib.util

import pytest
from conftest import ROOT

import mlmglauber as mg

spec = importlib.util.spec_from_file_location("docs_build", ROOT / "docs" / "build.py")
build = importlib.util.module_from_spec(spec)
spec.loader.exec_module(build)


@pytest.mark.parametrize(("path", "make"), [("docs/python.md", build.markdown), ("man/mlm-api.7", build.manual)])
def test_the_documents_are_those_that_build_makes(path, make):
    assert (ROOT / path).read_text() == make(), "run docs/build.py"


def test_every_public_name_is_described_with_an_example_that_runs():
    names = {*build.FUNCTIONS, *build.CLASSES}
    assert names == set(mg.__all__)
    with_example = 0
    for name in sorted(names):
        heading, paragraphs, examples = build.parts(name)
        assert heading.startswith(f"{name}(")
        assert paragraphs
        tests = doctest.DocTestParser().get_doctest(examples, {}, name, None, 0)
        assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(tests).failed == 0, name
        with_example += bool(tests.examples)
    assert with_example >= 11
