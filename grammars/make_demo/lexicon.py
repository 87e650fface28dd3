"""The words: one line each, read into records when the module is imported.

Frequent words are first in each class: the generator prefers them, so that the last ones occur once or never,
as in any corpus. Some German words have several entries: ``bank`` is a bench or a bank, depending on the
context (``auf der bank im park``, ``in der bank``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

from grammars.make_demo.tables import ADJECTIVES, NOUNS, PLACES, SEATS

R = TypeVar("R")


class Noun(NamedTuple):
    german: str
    gender: str  # m, f, n; w for a masculine that takes -n in all cases but the nominative
    plural: str  # "-" if there is none
    english: str
    english_plural: str
    classes: frozenset[str]


class Verb(NamedTuple):
    prefix: str  # the separable one, or ""
    infinitive: str  # without the prefix
    singular: str  # third person, without the prefix
    participle: str
    auxiliary: str  # haben or sein
    english: str
    past: str
    english_participle: str
    objects: frozenset[str]


class Adjective(NamedTuple):
    german: str
    stem: str  # to which endings are added
    comparative: str
    english: str
    english_comparative: str
    classes: frozenset[str]


class Place(NamedTuple):
    noun: Noun
    preposition: str
    english: str


TRANSITIVE = """
kaufen kauft gekauft h buy bought bought thing,read,vehicle,wear,gift,food,building
lesen liest gelesen h read read read read
sehen sieht gesehen h see saw seen person,animal,sight,vehicle
suchen sucht gesucht h look_for looked_for looked_for thing,person,animal
essen isst gegessen h eat ate eaten food
auf|machen macht aufgemacht h open opened opened open
trinken trinkt getrunken h drink drank drunk drink
schreiben schreibt geschrieben h write wrote written read,send
an|rufen ruft angerufen h call called called person
finden findet gefunden h find found found thing,animal,gift
verkaufen verkauft verkauft h sell sold sold building,vehicle,thing
zu|machen macht zugemacht h close closed closed open
kennen kennt gekannt h know knew known person,sight
besuchen besucht besucht h visit visited visited person,sight
kochen kocht gekocht h cook cooked cooked cook
an|ziehen zieht angezogen h put_on put_on put_on wear
vergessen vergisst vergessen h forget forgot forgotten thing,event,tale
reparieren repariert repariert h repair repaired repaired machine,crack
auf|geben gibt aufgegeben h give_up gave_up given_up abandon
ein|laden lädt eingeladen h invite invited invited person
brauchen braucht gebraucht h need needed needed thing,money,wear
verstehen versteht verstanden h understand understood understood person,solve,tale
aus|ziehen zieht ausgezogen h take_off took_off taken_off wear
backen backt gebacken h bake baked baked bake
treffen trifft getroffen h meet met met person
treffen trifft getroffen h hit hit hit hit
ein|schalten schaltet eingeschaltet h turn_on turned_on turned_on switch
aus|schalten schaltet ausgeschaltet h turn_off turned_off turned_off switch
putzen putzt geputzt h clean cleaned cleaned room,open
auf|räumen räumt aufgeräumt h tidy_up tidied_up tidied_up room
lernen lernt gelernt h learn learned learned learn
ab|holen holt abgeholt h pick_up picked_up picked_up person,thing
mit|bringen bringt mitgebracht h bring brought brought gift,food,person
vor|bereiten bereitet vorbereitet h prepare prepared prepared event
spielen spielt gespielt h play played played play
wechseln wechselt gewechselt h change changed changed money,screw
streichen streicht gestrichen h paint painted painted paint
singen singt gesungen h sing sang sung sing
lösen löst gelöst h solve solved solved solve
an|sehen sieht angesehen h watch watched watched watch
besichtigen besichtigt besichtigt h visit visited visited sight
verlieren verliert verloren h lose lost lost thing,money
waschen wäscht gewaschen h wash washed washed wear,vehicle
füttern füttert gefüttert h feed fed fed animal
mit|nehmen nimmt mitgenommen h take took taken thing,animal,cover
auf|brechen bricht aufgebrochen h break_open broke_open broken_open crack,open
zu|drehen dreht zugedreht h turn_off turned_off turned_off screw
verschieben verschiebt verschoben h postpone postponed postponed event
ab|sagen sagt abgesagt h cancel cancelled cancelled event
"""

DITRANSITIVE = """
versprechen verspricht versprochen h promise promised promised gift,money,read
geben gibt gegeben h give gave given thing,money,food
zeigen zeigt gezeigt h show showed shown thing,building,sight
schenken schenkt geschenkt h give gave given gift
schicken schickt geschickt h send sent sent send
erzählen erzählt erzählt h tell told told tale
leihen leiht geliehen h lend lent lent thing,money,vehicle
bringen bringt gebracht h bring brought brought food,drink,thing
vor|lesen liest vorgelesen h read read read tale,read
"""

INTRANSITIVE = """
arbeiten arbeitet gearbeitet h work worked worked -
schlafen schläft geschlafen h sleep slept slept -
spielen spielt gespielt h play played played -
warten wartet gewartet h wait waited waited -
ein|kaufen kauft eingekauft h shop shopped shopped -
lachen lacht gelacht h laugh laughed laughed -
tanzen tanzt getanzt h dance danced danced -
auf|stehen steht aufgestanden s get_up got_up got_up -
an|kommen kommt angekommen s arrive arrived arrived -
ein|schlafen schläft eingeschlafen s fall_asleep fell_asleep fallen_asleep -
fern|sehen sieht ferngesehen h watch_tv watched_tv watched_tv -
bleiben bleibt geblieben s stay stayed stayed -
schwimmen schwimmt geschwommen s swim swam swum -
um|ziehen zieht umgezogen s move moved moved -
"""

MOTION = """
gehen geht gegangen s go went gone -
fahren fährt gefahren s go went gone -
fahren fährt gefahren s drive drove driven -
laufen läuft gelaufen s walk walked walked -
reisen reist gereist s travel travelled travelled -
zurück|kommen kommt zurückgekommen s come_back came_back come_back -
"""

POSITION = """
sitzen sitzt gesessen h sit sat sat -
liegen liegt gelegen h lie lay lain -
stehen steht gestanden h stand stood stood -
schlafen schläft geschlafen h sleep slept slept -
warten wartet gewartet h wait waited waited -
"""

# Verbs with a dative object; the object of the last three is the English subject.
DATIVE = """
helfen hilft geholfen h help helped helped person
danken dankt gedankt h thank thanked thanked person
folgen folgt gefolgt s follow followed followed person
"""
PLEASING = """
gefallen gefällt gefallen h like liked liked gift,read,watch,building,wear,sight,play
schmecken schmeckt geschmeckt h like liked liked food
fehlen fehlt gefehlt h miss missed missed person
"""

# Verb, German preposition and case, then what follows it; the English verb ends in its own preposition.
PREPOSITIONAL = """
warten|auf|a wartet gewartet h wait_for waited_for waited_for person,travel
denken|an|a denkt gedacht h think_of thought_of thought_of person,event
sprechen|mit|d spricht gesprochen h talk_to talked_to talked_to person
sprechen|über|a spricht gesprochen h talk_about talked_about talked_about read,watch,event
bitten|um|a bittet gebeten h ask_for asked_for asked_for money
"""

PERSON_NAMES = (
    "anna peter maria paul julia thomas lena felix sophie jonas clara emil frieda anton greta oskar"
)
RARE_NAMES = "wendelin kunigunde herrmann rosalinde balduin ottilie friedlinde eusebius thusnelda leberecht"
CITIES = "berlin münchen hamburg köln wien leipzig bremen dresden basel graz kiel trier ulm bochum görlitz"
ENGLISH_CITIES = {"münchen": "munich", "köln": "cologne", "wien": "vienna"}


def _records(table: str, read: Callable[[list[str]], R]) -> list[R]:
    return [read(line.split()) for line in table.strip().splitlines()]


def _classes(field: str) -> frozenset[str]:
    return frozenset(field.split(","))


def _english(field: str) -> str:
    return field.replace("_", " ")


def read_noun(fields: list[str]) -> Noun:
    german, gender, plural, english, english_plural, classes = fields
    return Noun(german, gender, plural, _english(english), _english(english_plural), _classes(classes))


def _read_place(fields: list[str]) -> Place:
    return Place(read_noun([*fields[:5], "place"]), fields[5], _english(fields[6]))


def _read_verb(fields: list[str]) -> Verb:
    prefix, _, infinitive = fields[0].rpartition("|")
    base, past, participle = map(_english, fields[4:7])
    singular, german_participle, auxiliary = fields[1:4]
    german = (prefix, infinitive, singular, german_participle, auxiliary)
    return Verb(*german, base, past, participle, _classes(fields[7]))


def _read_prepositional() -> Iterator[tuple[Verb, str, str]]:
    for line in PREPOSITIONAL.strip().splitlines():
        head, *rest = line.split()
        infinitive, preposition, case = head.split("|")
        yield _read_verb([infinitive, *rest]), preposition, case


nouns = _records(NOUNS, read_noun)
places = _records(PLACES, _read_place)
seats = _records(SEATS, _read_place)
adjectives = _records(ADJECTIVES, lambda f: Adjective(f[0], f[1], f[2], f[3], f[4], _classes(f[5])))
transitive, ditransitive, intransitive, motion, position, dative, pleasing = (
    _records(table, _read_verb)
    for table in (TRANSITIVE, DITRANSITIVE, INTRANSITIVE, MOTION, POSITION, DATIVE, PLEASING)
)
prepositional = list(_read_prepositional())
