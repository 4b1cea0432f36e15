"""Merging: the person's own over a plugin's over the built-in, nothing dropped without a word (spec/04 §2)."""

from pizzabot.host.skills.catalogue import MAX_SKILLS, SkillParser, merge
from pizzabot_hookspecs.skill_sources import Origin, RawSkill

GOOD = b"---\ndescription: d\n---\nbody"


def raw(skill_id, origin, content=GOOD, **more):
    return RawSkill(id=skill_id, files={"SKILL.md": content}, origin=origin, **more)


def merged(**sources):
    parser = SkillParser()
    return merge({name: parser.parse(name, bundles) for name, bundles in sources.items()}, {})


def test_the_persons_own_wins_over_a_plugins_and_that_over_the_built_in():
    builtin, plugin, user = raw("a", Origin.BUILTIN), raw("a", Origin.PLUGIN, plugin="acme"), raw("a", Origin.USER)
    for order in ([builtin, plugin, user], [user, plugin, builtin], [plugin, user, builtin]):
        found = merged(**{f"s{place}": [one] for place, one in enumerate(order)}).skills["a"]
        assert (found.origin, found.overrides) == (Origin.USER, Origin.PLUGIN)
    found = merged(one=[builtin], two=[plugin]).skills["a"]
    assert (found.origin, found.overrides, found.owner_key) == (Origin.PLUGIN, Origin.BUILTIN, "plugin:acme")
    assert merged(one=[builtin]).skills["a"].overrides is None


def test_merging_changes_none_of_its_inputs():
    parser = SkillParser()
    shipped, own = parser.parse("one", [raw("a", Origin.BUILTIN)]), parser.parse("two", [raw("a", Origin.USER)])
    merge({"one": shipped, "two": own}, {})
    assert own[0].overrides is None


def test_of_two_with_the_same_origin_the_first_source_wins_and_the_other_is_told():
    found = merged(one=[raw("a", Origin.PLUGIN, plugin="x")], two=[raw("a", Origin.PLUGIN, plugin="y")])
    assert found.skills["a"].plugin == "x"
    assert [(problem.source, problem.id) for problem in found.problems] == [("two", "a")]
    assert "plugin x" in found.problems[0].fault.reason


def test_a_broken_own_copy_does_not_bring_the_shipped_one_back():
    found = merged(one=[raw("a", Origin.BUILTIN)], two=[raw("a", Origin.USER, b"---\ndescription: [\n---\n")])
    assert (found.skills["a"].origin, found.skills["a"].fault is not None) == (Origin.USER, True)
    assert [(problem.source, problem.id, problem.fault.line) for problem in found.problems] == [("two", "a", 3)]


def test_a_refused_skill_is_a_problem_and_hides_nothing():
    hooks = b"---\ndescription: d\nhooks: x\n---\n"
    found = merged(
        one=[raw("a", Origin.BUILTIN), raw("pizza-bot", Origin.BUILTIN)], two=[raw("a", Origin.PLUGIN, hooks)]
    )
    assert found.skills["a"].origin is Origin.BUILTIN
    assert {problem.id for problem in found.problems} == {"a", "pizza-bot"}


def test_one_bad_bundle_does_not_block_its_siblings():
    found = merged(one=[raw("bad", Origin.USER, b"\xff"), raw("good", Origin.USER)])
    assert found.skills["good"].fault is None
    assert list(found.skills) == ["bad", "good"]


def test_a_bundle_whose_files_are_no_bytes_is_told_and_its_siblings_are_there():
    found = merged(one=[raw("bad", Origin.USER, "text"), raw("good", Origin.USER)])
    assert list(found.skills) == ["good"]
    assert [(problem.id, "no skill" in problem.fault.reason) for problem in found.problems] == [("bad", True)]


def test_what_did_not_change_is_not_parsed_again():
    parser = SkillParser()
    first = parser.parse("s", [raw("a", Origin.USER)])[0]
    assert parser.parse("s", [raw("a", Origin.USER)])[0] is first
    assert parser.parse("s", [raw("a", Origin.USER, GOOD + b"x")])[0] is not first


def test_more_skills_than_the_limit_and_two_of_an_id_are_told():
    bundles = [raw(f"s{place}", Origin.USER) for place in range(MAX_SKILLS + 1)]
    found = merged(one=[*bundles[:1], *bundles])
    assert f"s{MAX_SKILLS}" not in found.skills
    reasons = [problem.fault.reason for problem in found.problems]
    assert any("twice" in reason for reason in reasons)
    assert any(str(MAX_SKILLS) in reason for reason in reasons)


def test_a_source_that_failed_is_a_problem_of_its_own():
    found = merge({}, {"far": "it is away"})
    assert [(problem.source, problem.id, problem.fault.reason) for problem in found.problems] == [
        ("far", "", "it is away")
    ]
