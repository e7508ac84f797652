"""Real American cities with their states and coordinates: the map that invented worlds share.

Only the map is real; whatever a world says about a place is made up. Every state has at least
three cities, since a week's trip visits up to three cities of one state, and every city name
occurs once, since the tables name a city without its state.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import asin, cos, radians, sin, sqrt

import msgspec

__all__ = ("CITIES", "STATES", "City", "kilometres")


class City(msgspec.Struct, frozen=True):
    """A city; degrees north and east."""

    name: str
    state: str
    latitude: float
    longitude: float


# State: city latitude longitude; ... (degrees, rounded to hundredths)
_TABLE = """
Arizona: Phoenix 33.45 -112.07; Tucson 32.22 -110.97; Flagstaff 35.20 -111.65; Yuma 32.69 -114.63
California: Los Angeles 34.05 -118.24; San Diego 32.72 -117.16; San Francisco 37.77 -122.42; \
Sacramento 38.58 -121.49; Fresno 36.74 -119.78; Santa Barbara 34.42 -119.70; Redding 40.59 -122.39
Colorado: Denver 39.74 -104.99; Colorado Springs 38.83 -104.82; Grand Junction 39.06 -108.55; \
Durango 37.28 -107.88; Aspen 39.19 -106.82
Florida: Miami 25.76 -80.19; Orlando 28.54 -81.38; Tampa 27.95 -82.46; Jacksonville 30.33 -81.66; \
Tallahassee 30.44 -84.28; Pensacola 30.42 -87.22; Key West 24.56 -81.78
Georgia: Atlanta 33.75 -84.39; Savannah 32.08 -81.09; Augusta 33.47 -81.97; Macon 32.84 -83.63; \
Valdosta 30.83 -83.28
Idaho: Boise 43.62 -116.20; Idaho Falls 43.49 -112.03; Pocatello 42.87 -112.45; \
Twin Falls 42.56 -114.46; Lewiston 46.42 -117.02
Illinois: Chicago 41.88 -87.63; Peoria 40.69 -89.59; Rockford 42.27 -89.09; Champaign 40.12 -88.24; \
Moline 41.51 -90.52
Indiana: Indianapolis 39.77 -86.16; South Bend 41.68 -86.25; Fort Wayne 41.08 -85.14; \
Evansville 37.97 -87.56
Iowa: Des Moines 41.59 -93.62; Cedar Rapids 41.98 -91.67; Dubuque 42.50 -90.66; \
Sioux City 42.50 -96.40
Kansas: Wichita 37.69 -97.34; Topeka 39.05 -95.68; Garden City 37.97 -100.87; Salina 38.84 -97.61
Louisiana: New Orleans 29.95 -90.07; Baton Rouge 30.45 -91.19; Shreveport 32.53 -93.75; \
Lafayette 30.22 -92.02
Maryland: Baltimore 39.29 -76.61; Hagerstown 39.64 -77.72; Salisbury 38.36 -75.60
Massachusetts: Boston 42.36 -71.06; Worcester 42.26 -71.80; Nantucket 41.28 -70.10
Michigan: Detroit 42.33 -83.05; Grand Rapids 42.96 -85.67; Lansing 42.73 -84.56; \
Traverse City 44.76 -85.62; Marquette 46.54 -87.40
Minnesota: Minneapolis 44.98 -93.27; Duluth 46.79 -92.10; Bemidji 47.47 -94.88; Hibbing 47.43 -92.94
Missouri: St. Louis 38.63 -90.20; Kansas City 39.10 -94.58; Joplin 37.08 -94.51; Branson 36.64 -93.22
Montana: Billings 45.78 -108.50; Bozeman 45.68 -111.04; Missoula 46.87 -113.99; Helena 46.59 -112.04; \
Great Falls 47.51 -111.28
Nebraska: Omaha 41.26 -95.94; Lincoln 40.81 -96.70; North Platte 41.12 -100.77; Kearney 40.70 -99.08
Nevada: Las Vegas 36.17 -115.14; Reno 39.53 -119.81; Elko 40.83 -115.76
New Mexico: Albuquerque 35.08 -106.65; Santa Fe 35.69 -105.94; Roswell 33.39 -104.52
New York: Buffalo 42.89 -78.88; Rochester 43.16 -77.61; Syracuse 43.05 -76.15; Albany 42.65 -73.76; \
Ithaca 42.44 -76.50; Plattsburgh 44.70 -73.45
North Carolina: Charlotte 35.23 -80.84; Raleigh 35.78 -78.64; Asheville 35.60 -82.55; \
Wilmington 34.23 -77.94; Greensboro 36.07 -79.79
North Dakota: Fargo 46.88 -96.79; Bismarck 46.81 -100.78; Minot 48.23 -101.30
Ohio: Columbus 39.96 -83.00; Cleveland 41.50 -81.69; Cincinnati 39.10 -84.51; Toledo 41.66 -83.56; \
Akron 41.08 -81.52
Oklahoma: Oklahoma City 35.47 -97.52; Tulsa 36.15 -95.99; Lawton 34.61 -98.39
Oregon: Portland 45.52 -122.68; Eugene 44.05 -123.09; Medford 42.33 -122.87; Bend 44.06 -121.31
Pennsylvania: Philadelphia 39.95 -75.17; Pittsburgh 40.44 -80.00; Harrisburg 40.27 -76.88; \
Erie 42.13 -80.09; Scranton 41.41 -75.66
South Carolina: Charleston 32.78 -79.93; Columbia 34.00 -81.03; Greenville 34.85 -82.40; \
Myrtle Beach 33.69 -78.89
Tennessee: Nashville 36.16 -86.78; Memphis 35.15 -90.05; Knoxville 35.96 -83.92; \
Chattanooga 35.05 -85.31
Texas: Houston 29.76 -95.37; Dallas 32.78 -96.80; Austin 30.27 -97.74; San Antonio 29.42 -98.49; \
El Paso 31.76 -106.49; Lubbock 33.58 -101.86; Corpus Christi 27.80 -97.40; Amarillo 35.22 -101.83
Utah: Salt Lake City 40.76 -111.89; St. George 37.10 -113.57; Moab 38.57 -109.55; Provo 40.23 -111.66
Virginia: Richmond 37.54 -77.44; Norfolk 36.85 -76.29; Roanoke 37.27 -79.94; \
Charlottesville 38.03 -78.48
Washington: Seattle 47.61 -122.33; Spokane 47.66 -117.43; Yakima 46.60 -120.51; \
Walla Walla 46.06 -118.34
Wisconsin: Milwaukee 43.04 -87.91; Madison 43.07 -89.40; Green Bay 44.51 -88.01; \
Eau Claire 44.81 -91.50; La Crosse 43.80 -91.24
Wyoming: Cheyenne 41.14 -104.82; Casper 42.85 -106.31; Jackson 43.48 -110.76
"""


def _cities() -> dict[str, City]:
    cities: dict[str, City] = {}
    for line in _TABLE.strip().splitlines():
        state, _, entries = line.partition(": ")
        for entry in entries.split("; "):
            name, latitude, longitude = entry.rsplit(" ", 2)
            cities[name] = City(name, state, float(latitude), float(longitude))
    return cities


CITIES: Mapping[str, City] = _cities()
"""By name."""

STATES: Mapping[str, tuple[str, ...]] = {
    state: tuple(city.name for city in CITIES.values() if city.state == state)
    for state in dict.fromkeys(city.state for city in CITIES.values())
}
"""The cities of each state."""


def kilometres(a: City, b: City) -> float:
    """The great-circle distance between two cities (haversine formula, radius 6,371 km)."""
    north = radians(b.latitude - a.latitude) / 2
    east = radians(b.longitude - a.longitude) / 2
    across = cos(radians(a.latitude)) * cos(radians(b.latitude))
    return 2 * 6371.0 * asin(sqrt(sin(north) ** 2 + across * sin(east) ** 2))
