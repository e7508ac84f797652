"""Loading TravelPlanner's files, in every form in which they come."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import pytest
from duolog.engine.errors import InvalidInput
from duolog.examples.travel.data.dataset import load_dataset, preferences_of, short_request
from duolog.examples.travel.data.tables import Constraints, Route, Trip

DATA = Path(os.environ.get("DUOLOG_TEST_DATA") or Path(__file__).parents[4] / "shared" / "data")


def printed(columns: str, *rows: str) -> str:
    """A table as it is printed: columns justified to the right."""
    cells = [line.split("|") for line in (columns, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        " ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in cells
    )


RESTAURANTS = printed(
    "Name|Average Cost|Cuisines|Aggregate Rating|City",
    "Old Mill|20|Thai, Indian|4.1|Bexley",
    "Two\\nLines  and a space |5|Cafe|0.0|Bexley",
)
ACCOMMODATIONS = printed(
    "NAME|price|room type|house_rules|minimum nights|maximum occupancy|review rate number|city",
    "Garden Flat|100.0|Private room|No pets & No smoking|2.0|2|5.0|Bexley",
)
FLIGHTS = printed(
    "Flight Number|Price|DepTime|ArrTime|ActualElapsedTime|FlightDate|OriginCityName|DestCityName"
    "|Distance",
    "F3633405|228|05:38|08:10|2 hours 32 minutes|2022-03-01|Aston|Bexley|557.0",
)
ATTRACTIONS = printed(
    "Name|Latitude|Longitude|Address|Phone|Website|City",
    "Castle|34.172588|-118.31|1 Main St.|(818) 841-6333|http://c.org|Bexley",
)
ROUTE = "self-driving, from Aston to Bexley, duration: 1 hour, distance: 1,118 km, cost: 55"


def reference(**changes: object) -> list[dict[str, object]]:
    tables: dict[str, object] = {
        "Attractions in Bexley": ATTRACTIONS,
        "Restaurants in Bexley": RESTAURANTS,
        "Accommodations in Bexley": ACCOMMODATIONS,
        "Flight from Aston to Bexley on 2022-03-01": FLIGHTS,
        "Flight from Bexley to Aston on 2022-03-03": "There is no flight from Bexley to Aston on "
        "2022-03-03.",
        "Self-driving from Aston to Bexley": ROUTE,
        "Taxi from Aston to Bexley": "No valid information.",
    }
    return [{"Description": name, "Content": table} for name, table in (tables | changes).items()]


def row(**changes: object) -> dict[str, object]:
    return {
        "org": "Aston",
        "dest": "Bexley",
        "days": 3,
        "visiting_city_number": 1,
        "date": ["2022-03-01", "2022-03-02", "2022-03-03"],
        "people_number": 2,
        "local_constraint": {
            "house rule": "pets",
            "cuisine": ["Thai", "French"],
            "room type": None,
            "transportation": "no flight",
        },
        "budget": 1500,
        "query": "Please plan a trip.",
        "level": "hard",
        "reference_information": reference(),
        "preferences": ["Travel for 2 people"],
    } | changes


def write_instances(directory: Path, *rows: dict[str, object], cities: bool = True) -> Path:
    path = directory / "instances.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    if cities:
        (directory / "citySet_with_states.txt").write_text("Aston\tWest\nBexley\tEast", "utf-8")
    return path


def test_an_instance_and_its_tables(tmp_path: Path) -> None:
    dataset = load_dataset(write_instances(tmp_path, row()))
    (instance,) = dataset.instances
    assert instance.trip == Trip(
        origin="Aston",
        destination="Bexley",
        days=3,
        cities=1,
        dates=("2022-03-01", "2022-03-02", "2022-03-03"),
        people=2,
        budget=1500,
        constraints=Constraints(
            house_rule="pets", cuisine=("Thai", "French"), transportation="no flight"
        ),
    )
    assert instance.row == 0
    assert instance.query == "Please plan a trip."
    assert instance.request == short_request(instance.trip)
    assert instance.preferences == ("Travel for 2 people",)
    sandbox = dataset.sandbox
    assert [r.name for r in sandbox.restaurants] == ["Old Mill", "Two\nLines  and a space "]
    assert sandbox.restaurants[0].cuisines == "Thai, Indian"
    (room,) = sandbox.accommodations
    assert (room.name, room.price, room.house_rules) == ("Garden Flat", 100, "No pets & No smoking")
    assert (room.minimum_nights, room.maximum_occupancy, room.rating) == (2, 2, 5)
    (flight,) = sandbox.flights
    assert (flight.number, flight.price, flight.elapsed) == ("F3633405", 228, "2 hours 32 minutes")
    (sight,) = sandbox.attractions
    assert (sight.phone, sight.longitude) == ("(818) 841-6333", -118.31)
    assert sandbox.routes == (
        Route("Aston", "Bexley", "self-driving", "1 hour", "1,118 km", 55),
        Route("Aston", "Bexley", "taxi", None, None, None),
    )
    assert sandbox.states == {"Aston": "West", "Bexley": "East"}


def test_the_short_request_gives_no_preference_away() -> None:
    trip = Trip(
        origin="Aston",
        destination="East",
        days=5,
        cities=2,
        dates=("2022-03-19",) * 5,
        people=4,
        budget=1900,
        constraints=Constraints(house_rule="pets", room_type="entire room", cuisine=("Thai",)),
    )
    request = short_request(trip)
    assert all(part in request for part in ("Aston", "East", "5-day", "2022-03-19"))
    assert not any(word in request for word in ("4", "1900", "1,900", "pets", "entire", "Thai"))
    told = " ".join(preferences_of(trip))
    assert all(w in told for w in ("4 people", "2 cities", "$1,900", "pets", "entire", "Thai"))


def test_data_without_a_profile_has_one_made_from_the_request(tmp_path: Path) -> None:
    plain = {key: value for key, value in row().items() if key != "preferences"}
    (instance,) = load_dataset(write_instances(tmp_path, plain)).instances
    assert instance.preferences == preferences_of(instance.trip)


def test_a_literal_is_read_and_never_run(tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    path = write_instances(tmp_path, row(date=f"open({str(proof)!r}, 'w')"))
    with pytest.raises(InvalidInput, match=r"row 0, column 'date': expected a Python literal"):
        load_dataset(path)
    assert not proof.exists()


@pytest.mark.parametrize(
    ("column", "value", "why"),
    [
        ("days", "three", "expected a number, found 'three'"),
        ("days", "2.5", "expected a whole number from 1 on, found '2.5'"),
        ("people_number", "0", "expected a whole number from 1 on"),
        ("budget", "nan", "expected a number"),
        ("org", " ", "is empty"),
        ("date", "['2022-03-01']", "expected 3 dates, one a day, found 1"),
        ("date", "7", "expected a list of texts"),
        ("date", "[" * 5000, "expected a Python literal"),
        ("local_constraint", "[]", "expected a dictionary"),
        ("local_constraint", "{'cuisine': 'Thai'}", "expected a list of cuisines"),
        ("local_constraint", "{'room type': 5}", "expected text or None for 'room type'"),
        ("preferences", "None", "expected a list of texts"),
        ("reference_information", "{}", "expected a list of tables"),
        ("reference_information", "[{}]", "expected dictionaries with 'Description'"),
        ("reference_information", [{"Description": "Ships in Bexley", "Content": ""}],
         "expected a title such as"),
        ("reference_information", reference(**{"Restaurants in Bexley": 5}), "expected a table"),
        ("reference_information", reference(**{"Restaurants in Bexley": "Name\n  x"}),
         "unknown column 'Average Cost'"),
        ("reference_information", reference(**{"Restaurants in Bexley": RESTAURANTS[:-1]}),
         "row 1, column 'City': the row is"),
        ("reference_information",
         reference(**{"Restaurants in Bexley": RESTAURANTS.replace(" 20 ", " 2x ")}),
         "row 0, column 'Average Cost': expected a number, found '2x'"),
        ("reference_information", reference(**{"Self-driving from Aston to Bexley": "by night"}),
         "expected 'self-driving, from A to B, duration"),
    ],
)  # fmt: skip
def test_a_malformed_row_is_one_error_with_file_row_and_column(
    tmp_path: Path, column: str, value: object, why: str
) -> None:
    path = write_instances(tmp_path, row(), row(**{column: value}))
    with pytest.raises(InvalidInput) as caught:
        load_dataset(path)
    message = str(caught.value)
    assert message.startswith(f"{path}, row 1, column {column!r}")
    assert why in message


def test_a_row_of_the_wrong_length(tmp_path: Path) -> None:
    path = write_instances(tmp_path, row())
    with path.open("a", encoding="utf-8") as file:
        file.write("Aston,Bexley\n")
    with pytest.raises(InvalidInput, match="row 1, column 'days': the row ends before it"):
        load_dataset(path)
    path = write_instances(tmp_path, row())
    path.write_text(path.read_text("utf-8").rstrip() + ",more\n", "utf-8")
    with pytest.raises(InvalidInput, match="row 0: it has more columns than the header"):
        load_dataset(path)


def test_tables_as_json_lines(tmp_path: Path) -> None:
    rows = [
        {"Name": "Old Mill", "Average Cost": 20, "Cuisines": "Thai", "Aggregate Rating": 4.1,
         "City": "Bexley"},
        {"Name": 1918, "Average Cost": 7, "Cuisines": "Cafe", "Aggregate Rating": 4,
         "City": "Bexley"},
    ]  # fmt: skip
    line = json.dumps(
        {"Restaurants in Bexley": rows, "Taxi from Aston to Bexley": "No valid information."}
        | {"Attractions in Bexley": [], "Flight from A to B on 2022-03-01": "There is no flight."}
    )
    (tmp_path / "train_ref_info.jsonl").write_text(f"{line}\n{line}\n", "utf-8")
    dataset = load_dataset(tmp_path / "train_ref_info.jsonl")
    assert dataset.instances == ()
    assert [r.name for r in dataset.sandbox.restaurants] == ["Old Mill", "1918"]
    assert len(dataset.sandbox.routes) == 1
    for text, why in (("{", "this is not JSON"), ("[]", "expected a JSON object")):
        (tmp_path / "train_ref_info.jsonl").write_text(f"{line}\n{text}", "utf-8")
        with pytest.raises(InvalidInput, match=f"row 1: {why}"):
            load_dataset(tmp_path)


def write_database(directory: Path) -> None:
    """TravelPlanner's own layout, with rows that its loaders drop."""
    files = {
        "restaurants/clean_restaurant_2022.csv": ",Name,City,Cuisines,Average Cost,Aggregate Rating\n"
        '0,Old Mill,Bexley,"Thai, Cafe",20,4.1\n1,,Bexley,Thai,20,4.1\n2,NA,Bexley,Thai,20,4.1\n',
        "accommodations/clean_accommodations_2022.csv": ",NAME,room type,price,minimum nights,"
        "review rate number,house_rules,maximum occupancy,city\n"
        "0,Flat,Private room,131.0,1.0,2.0,No smoking,1,Bexley\n"
        "1,Hut,Private room,131.0,,2.0,No smoking,1,Bexley\n",
        "attractions/attractions.csv": "Name,Latitude,Longitude,Address,Phone,Website,City\n"
        'Castle,32.6,-117.2,"1 Main St, Bexley",Unknown,Unknown,Bexley\n',
        "flights/clean_Flights_2022.csv": "Unnamed: 0,Flight Number,Price,DepTime,ArrTime,"
        "ActualElapsedTime,FlightDate,OriginCityName,DestCityName,Distance\n"
        "7,F1,50,08:00,09:00,1 hours 0 minutes,2022-03-01,Aston,Bexley,100.0\n",
        "googleDistanceMatrix/distance.csv": "origin,destination,cost,duration,distance\n"
        'Aston,Bexley,,10 hours 55 mins,"1,144 km"\nBexley,Aston,,1 hour,98.6 km\n'
        'Aston,Carlow,,,\nAston,Dunmore,,1 day 2 hours,"3,000 km"\n'
        "Aston,Bexley,,1 min,1 km\n",
        "background/citySet_with_states.txt": "Aston\tWest\nBexley\tEast\n",
        "background/citySet.txt": "Aston\nBexley\n",
    }
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def test_travelplanners_own_database(tmp_path: Path) -> None:
    write_database(tmp_path)
    sandbox = load_dataset(tmp_path).sandbox
    assert [r.name for r in sandbox.restaurants] == ["Old Mill"]
    assert [a.name for a in sandbox.accommodations] == ["Flat"]
    assert [a.address for a in sandbox.attractions] == ["1 Main St, Bexley"]
    assert [f.number for f in sandbox.flights] == ["F1"]
    cost = {key: route.cost for key, route in sandbox.route.items()}
    assert cost == {
        ("Aston", "Bexley", "self-driving"): 57,
        ("Aston", "Bexley", "taxi"): 1144,
        ("Bexley", "Aston", "self-driving"): 4,
        ("Bexley", "Aston", "taxi"): 98,
        ("Aston", "Carlow", "self-driving"): None,
        ("Aston", "Carlow", "taxi"): None,
        ("Aston", "Dunmore", "self-driving"): None,
        ("Aston", "Dunmore", "taxi"): None,
    }


def test_a_directory_is_the_union_of_its_files(tmp_path: Path) -> None:
    write_database(tmp_path / "database")
    write_instances(tmp_path, row(), cities=False)
    (tmp_path / "notes.txt").write_text("not ours", "utf-8")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n", "utf-8")
    dataset = load_dataset(tmp_path)
    assert len(dataset.instances) == 1
    # The database has Bexley's restaurants and the printed table adds none; flights of another
    # date add to those of the database.
    assert [r.name for r in dataset.sandbox.restaurants] == ["Old Mill"]
    assert dataset.sandbox.route["Aston", "Bexley", "taxi"].cost == 1144


def test_what_cannot_be_loaded_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no such file or directory"):
        load_dataset(tmp_path / "nowhere")
    with pytest.raises(InvalidInput, match="holds nothing of TravelPlanner's data"):
        load_dataset(tmp_path)
    path = write_instances(tmp_path, row(), cities=False)
    with pytest.raises(InvalidInput, match=r"lacks citySet_with_states\.txt"):
        load_dataset(path)
    (tmp_path / "citySet_with_states.txt").write_text("Aston\tWest\nBexley\n", "utf-8")
    with pytest.raises(InvalidInput, match="row 1, column 'state'"):
        load_dataset(tmp_path)
    (tmp_path / "citySet_with_states.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match="cannot be read as text"):
        load_dataset(tmp_path)
    (tmp_path / "citySet_with_states.txt").write_text("Aston\tWest", "utf-8")
    (tmp_path / "second.csv").write_bytes(path.read_bytes())
    with pytest.raises(InvalidInput, match=r"both .*instances.csv and .*second.csv"):
        load_dataset(tmp_path)
    (tmp_path / "second.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInput, match=r"second.csv cannot be read as CSV"):
        load_dataset(tmp_path)


def test_loading_leaves_the_limit_of_the_csv_module_alone(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    load_dataset(write_instances(tmp_path, row(query="x" * 300_000)))
    assert csv.field_size_limit() == before


@pytest.mark.skipif(
    not (DATA / "travelplanner").is_dir(), reason=f"no data at {DATA}; set DUOLOG_TEST_DATA"
)
def test_the_real_data() -> None:
    dataset = load_dataset(DATA / "travelplanner")
    assert len(dataset.instances) == 102
    assert all(i.preferences and len(i.trip.dates) == i.trip.days for i in dataset.instances)
    sandbox = dataset.sandbox
    assert len(sandbox.states) == 312
    assert any("\n" in room.name for room in sandbox.accommodations)
    # A file alone gives the same instances, and the part of the tables that it holds.
    alone = load_dataset(DATA / "travelplanner" / "validation_with_hidden_profile.csv")
    assert alone.instances == dataset.instances
    for city, rows in alone.sandbox.restaurants_in.items():
        assert rows == sandbox.restaurants_in[city]
    for city, rooms in alone.sandbox.accommodations_in.items():
        assert rooms == sandbox.accommodations_in[city]
