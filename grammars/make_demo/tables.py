"""The nouns and adjectives, a line each; ``lexicon`` defines and reads the fields."""

NOUNS = """
mann m männer man men person
frau f frauen woman women person
kind n kinder child children person
junge w jungen boy boys person
mädchen n mädchen girl girls person
lehrer m lehrer teacher teachers person
freund m freunde friend friends person
freundin f freundinnen girlfriend girlfriends person
arzt m ärzte doctor doctors person
nachbar w nachbarn neighbour neighbours person
student w studenten student students person
vater m väter father fathers person
mutter f mütter mother mothers person
bruder m brüder brother brothers person
schwester f schwestern sister sisters person
sohn m söhne son sons person
tochter f töchter daughter daughters person
chef m chefs boss bosses person
köchin f köchinnen cook cooks person
bauer w bauern farmer farmers person
gast m gäste guest guests person
leiter m leiter manager managers person
kollege w kollegen colleague colleagues person
polizist w polizisten police_officer police_officers person
großmutter f großmütter grandmother grandmothers person
hausarzt m hausärzte family_doctor family_doctors person
musiklehrer m musiklehrer music_teacher music_teachers person
nachbarin f nachbarinnen neighbour neighbours person
tischler m tischler carpenter carpenters person
zahnarzt m zahnärzte dentist dentists person
dichter m dichter poet poets person
bürgermeister m bürgermeister mayor mayors person
hund m hunde dog dogs animal
katze f katzen cat cats animal
pferd n pferde horse horses animal
vogel m vögel bird birds animal
hahn m hähne rooster roosters animal
schlange f schlangen snake snakes animal
maus f mäuse mouse mice animal
strauß m strauße ostrich ostriches animal
buch n bücher book books read,thing,gift
zeitung f zeitungen newspaper newspapers read,thing
brief m briefe letter letters read,thing,send
geschichte f geschichten story stories read,tale
roman m romane novel novels read,thing,gift
kinderbuch n kinderbücher children_'s_book children_'s_books read,thing,gift
gedicht n gedichte poem poems read,tale
karte f karten map maps thing,read
karte f karten card cards send,gift
wörterbuch n wörterbücher dictionary dictionaries read,thing
kochbuch n kochbücher cookbook cookbooks read,gift
auto n autos car cars vehicle,machine
fahrrad n fahrräder bike bikes vehicle,machine,gift
zug m züge train trains travel
bus m busse bus buses travel
boot n boote boat boats vehicle
uhr f uhren watch watches thing,machine,gift
ball m bälle ball balls thing,gift
schlüssel m schlüssel key keys thing
koffer m koffer suitcase suitcases thing,open
tasche f taschen bag bags thing,open
bild n bilder picture pictures thing,gift,send
strauß m sträuße bouquet bouquets gift
blume f blumen flower flowers gift,thing
decke f decken blanket blankets thing,cover
leiter f leitern ladder ladders thing
lampe f lampen lamp lamps machine,switch,thing
birne f birnen light_bulb light_bulbs screw
hahn m hähne tap taps screw
schloss n schlösser lock locks screw,crack
holztisch m holztische wooden_table wooden_tables thing
regenschirm m regenschirme umbrella umbrellas thing,open
geldbeutel m geldbeutel purse purses thing
tür f türen door doors open,paint
fenster n fenster window windows open
haustür f haustüren front_door front_doors open,paint
tor n tore gate gates open,paint
schrank m schränke cupboard cupboards open,paint
decke f decken ceiling ceilings paint
wand f wände wall walls paint
zaun m zäune fence fences paint
apfel m äpfel apple apples food
brötchen n brötchen roll rolls food
kuchen m kuchen cake cakes food,bake
suppe f suppen soup soups food,cook
fisch m fische fish fish food,cook
birne f birnen pear pears food
gericht n gerichte dish dishes food,cook
apfelkuchen m apfelkuchen apple_cake apple_cakes food,bake
schokoladenkuchen m schokoladenkuchen chocolate_cake chocolate_cakes food,bake
käsebrot n käsebrote cheese_sandwich cheese_sandwiches food
kartoffelsuppe f kartoffelsuppen potato_soup potato_soups food,cook
kaffee m - coffee - drink
tee m - tea - drink
wasser n - water - drink
milch f - milk - drink
hemd n hemden shirt shirts wear
jacke f jacken jacket jackets wear
kleid n kleider dress dresses wear,gift
mantel m mäntel coat coats wear
hut m hüte hat hats wear
winterjacke f winterjacken winter_jacket winter_jackets wear
schuh m schuhe shoe shoes wear
haus n häuser house houses building
wohnung f wohnungen flat flats building
schloss n schlösser castle castles sight,building
kirche f kirchen church churches sight
museum n museen museum museums sight
turm m türme tower towers sight
altstadt f altstädte old_town old_towns sight
zimmer n zimmer room rooms room
küche f küchen kitchen kitchens room
schlafzimmer n schlafzimmer bedroom bedrooms room
kinderzimmer n kinderzimmer children_'s_room children_'s_rooms room
klavier n klaviere piano pianos play
geige f geigen violin violins play
flügel m flügel grand_piano grand_pianos play
gitarre f gitarren guitar guitars play
film m filme film films watch
spiel n spiele game games watch
fußballspiel n fußballspiele football_match football_matches watch
theaterstück n theaterstücke play plays watch
sprache f sprachen language languages learn
lied n lieder song songs sing
frage f fragen question questions solve
aufgabe f aufgaben exercise exercises solve
problem n probleme problem problems solve
prüfung f prüfungen exam exams event
reise f reisen trip trips event
hochzeit f hochzeiten wedding weddings event
fest n feste party parties event
sitzung f sitzungen meeting meetings event
hoffnung f hoffnungen hope hopes abandon
plan m pläne plan plans abandon,solve
beruf m berufe job jobs abandon
geld n - money - money
licht n lichter light lights switch
radio n radios radio radios switch,machine
fernseher m fernseher television televisions switch,machine
ziel n ziele target targets hit
"""

# Noun, German preposition of place, English one.
PLACES = """
garten m gärten garden gardens in in
park m parks park parks in in
stadt f städte city cities in in
schule f schulen school schools in at
büro n büros office offices in in
bahnhof m bahnhöfe train_station train_stations an at
bank f banken bank banks in in
markt m märkte market markets auf at
see m seen lake lakes an at
wald m wälder forest forests in in
restaurant n restaurants restaurant restaurants in in
straße f straßen street streets auf on
dorf n dörfer village villages in in
krankenhaus n krankenhäuser hospital hospitals in in
universität f universitäten university universities an at
buchhandlung f buchhandlungen bookshop bookshops in in
schlange f schlangen queue queues in in
gericht n gerichte court courts in in
insel f inseln island islands auf on
hauptbahnhof m hauptbahnhöfe main_station main_stations an at
flughafen m flughäfen airport airports an at
bäckerei f bäckereien bakery bakeries in at
stadtpark m stadtparks city_park city_parks in in
"""

# Furniture and other places to be on, under or behind.
SEATS = """
bank f bänke bench benches auf on
stuhl m stühle chair chairs auf on
sofa n sofas sofa sofas auf on
tisch m tische table tables unter under
bett n betten bed beds in in
baum m bäume tree trees unter under
decke f decken blanket blankets unter under
tür f türen door doors vor in_front_of
haus n häuser house houses hinter behind
ofen m öfen stove stoves neben next_to
"""

ADJECTIVES = """
alt alt älter old older person,animal,thing,building,read,vehicle,wear,place,play
jung jung jünger young younger person,animal
klein klein kleiner small smaller person,animal,thing,building,place,gift,vehicle
groß groß größer big bigger animal,thing,building,place,vehicle,room
neu neu neuer new newer thing,read,vehicle,wear,building,machine,play,watch
schön schön schöner beautiful - thing,building,place,gift,wear,sing,sight
rot rot - red - thing,vehicle,wear,paint
teuer teur teurer expensive - thing,vehicle,wear,gift,building,play
müde müd müder tired - person,animal
freundlich freundlich freundlicher friendly friendlier person
kalt kalt kälter cold colder food,drink,room
interessant interessant interessanter interesting - read,watch,learn,tale
lecker lecker - delicious - food
schwarz schwarz - black - animal,wear,vehicle
schwer schwer schwerer difficult - solve,learn
schwer schwer schwerer heavy heavier thing
krank krank kränker sick - person,animal
lang lang länger long longer read,watch,event
billig billig billiger cheap cheaper thing,vehicle,wear
ruhig ruhig ruhiger quiet quieter place,room
dunkel dunkl dunkler dark darker room,place
klug klug klüger clever cleverer person,animal
frisch frisch frischer fresh fresher food
reich reich reicher rich richer person
berühmt berühmt berühmter famous - person,sight
hoch hoh höher high higher sight
blau blau - blue - wear,thing
traurig traurig trauriger sad sadder person,tale
"""
