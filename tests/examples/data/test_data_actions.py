"""The actions: possible selections and charts, and refusals that say what to do next."""

from __future__ import annotations

import pytest
from duolog.engine.errors import InvalidInput
from duolog.engine.events import JSON
from duolog.engine.session.environment import Action
from duolog.examples.data.actions import ACTIONS, World
from duolog.examples.data.analysis import SHEETS, claims_of, query_for
from duolog.examples.data.data_task import DataEnvironment
from duolog.examples.data.database import MOST_ROWS, Database
from duolog.examples.data.facts import agrees
from duolog.examples.data.instances import make_instance

ONE = make_instance(1, "1")
WORLD = World(ONE, Database(ONE.survey.tables), {})


def take(name: str, **arguments: JSON) -> dict[str, JSON]:
    found = ACTIONS.perform(WORLD, name, arguments)
    assert isinstance(found, dict)
    return found


def test_the_schema_lists_tables_columns_and_the_values_of_those_with_few() -> None:
    tables = take("Schema")
    assert set(tables) == {"people", "ratings", "prices"}
    people = tables["people"]
    assert isinstance(people, dict)
    assert people["rows"] == len(ONE.survey.tables.people)
    assert set(people["columns"]["wave"]["values"]) == {"main", "pilot"}
    assert people["columns"]["age"] == {"least": 18, "most": 79}


def test_a_query_gives_columns_and_rows_and_says_where_there_are_more() -> None:
    found = take("Query", sql="SELECT product, COUNT(*) AS n FROM ratings GROUP BY 1 ORDER BY 1")
    assert found["columns"] == ("product", "n")
    assert [row[0] for row in found["rows"]] == list(ONE.survey.names.products)  # type: ignore[union-attr,index]
    assert "more" not in found
    cut = take("Query", sql="SELECT * FROM ratings", limit=3)
    assert (len(cut["rows"]), cut["more"]) == (3, True)  # type: ignore[arg-type]
    assert len(take("Query", sql="SELECT * FROM ratings")["rows"]) == MOST_ROWS  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("DELETE FROM people", "can only be read"),
        ("PRAGMA table_info(people)", "can only be read"),
        ("ATTACH 'other' AS other", "can only be read"),
        ("EXPLAIN SELECT 1", "can only be read"),
        ("SELECT 1; SELECT 2", "one SELECT statement at a time"),
        ("", "write one SELECT"),
        ("SELECT name FROM sqlite_master", "only SELECT on the tables"),
        ("SELECT name FROM pragma_table_list", "only SELECT on the tables"),
        ("SELECT random()", "plain functions"),
        ("SELECT zeroblob(1000000000)", "plain functions"),
        ("SELECT load_extension('x')", "plain functions"),
        (
            "WITH RECURSIVE t(n) AS (SELECT 1 UNION SELECT n + 1 FROM t) SELECT * FROM t",
            "only SELECT",
        ),
        ("SELECT COUNT(*) FROM ratings a, ratings b, ratings c", "2,000,000 steps"),
        ("SELECT x'00'", "binary"),
        ("SELECT colour FROM people", "no such column: colour"),
        (f"SELECT '{'x' * 4000}'", "4000 are allowed"),
    ],
)
def test_what_is_no_harmless_query_is_refused(sql: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        take("Query", sql=sql)
    assert take("Query", sql="SELECT COUNT(*) FROM people")["rows"]


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(InvalidInput, match="called wrongly"):
        take("Query", sql="SELECT 1", limit=MOST_ROWS + 1)
    with pytest.raises(InvalidInput, match="called wrongly"):
        take("Chart", sql="SELECT 1")


def test_a_chart_is_a_line_of_text_and_a_specification() -> None:
    found = take("Chart", sql="SELECT 'app' AS channel, 2.9 AS points", title="Latte by channel")
    assert found["text"] == "Chart of Latte by channel: app ▇▇▇▇▇▇▇▇ 2.9"
    assert found["spec"]["data"] == {"values": [{"channel": "app", "points": 2.9}]}  # type: ignore[index,call-overload]


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT person, rating FROM ratings", "more rows"),
        ("SELECT 1 WHERE 0", "no rows"),
        ("SELECT region FROM people LIMIT 1", "is none"),
    ],
)
def test_what_cannot_be_drawn_is_refused(sql: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        take("Chart", sql=sql, title="People")


@pytest.mark.parametrize("sheet", SHEETS)
def test_careful_queries_find_what_is_true_and_hasty_ones_do_not_always(sheet: str) -> None:
    names, within = ONE.survey.names, ONE.rulings["within"]
    rows = WORLD.database.select(query_for(sheet, ONE.rulings)).rows  # type: ignore[arg-type]
    claims = claims_of(sheet, rows, names, within=within)  # type: ignore[arg-type]
    clear = [claim for topic, claim in claims.items() if topic in ONE.truth]
    assert clear
    assert all(agrees(claim, ONE.truth[claim.topic]) for claim in clear)
    hasty = WORLD.database.select(query_for(sheet, ONE.rulings, careful=False)).rows  # type: ignore[arg-type]
    assert hasty != rows


async def test_queries_run_beside_the_loop_with_a_duration_in_session_time() -> None:
    environment = DataEnvironment(WORLD)
    action = Action(
        version=1, actor="agent", role="agent", name="Query", arguments={"sql": "SELECT 1"}
    )
    outcome = await environment.perform(action)
    assert outcome.seconds == 1.5
    assert outcome.observation == {"columns": ["1"], "rows": [[1]]}
    assert set(environment.actions) == {"Schema", "Query", "Chart"}
    assert all(spec.repeatable for spec in environment.actions.values())


async def test_sessions_of_an_instance_share_results_and_cannot_change_each_others() -> None:
    asked = Action(
        version=1, actor="agent", role="agent", name="Query", arguments={"sql": "SELECT 1"}
    )
    world = WORLD._replace(known={})
    first = (await DataEnvironment(world).perform(asked)).observation
    assert isinstance(first, dict)
    first["rows"] = []
    broken = Database(None)  # type: ignore[arg-type]
    again = await DataEnvironment(world._replace(database=broken)).perform(asked)
    assert again.observation == {"columns": ["1"], "rows": [[1]]}
