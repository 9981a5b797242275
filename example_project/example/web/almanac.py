"""What the orchard handbook knows: tables of trees, work, ailments, months and words."""

from __future__ import annotations

from typing import NamedTuple


class Tree(NamedTuple):
    """One kind of tree."""

    name: str
    latin: str
    height_m: int
    soil: str
    blossom: str
    harvest: str
    keeps_weeks: int
    use: str


MONTHS = [
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
]

TREES = [
    Tree("almond", "Prunus dulcis", 6, "dry", "March", "September", 40, "marzipan"),
    Tree("apple", "Malus domestica", 7, "loamy", "May", "September", 20, "cider"),
    Tree("apricot", "Prunus armeniaca", 5, "dry", "March", "July", 2, "jam"),
    Tree("beech", "Fagus sylvatica", 30, "chalky", "April", "October", 30, "oil"),
    Tree("bird-cherry", "Prunus padus", 12, "moist", "May", "August", 1, "syrup"),
    Tree("blackthorn", "Prunus spinosa", 4, "chalky", "April", "October", 3, "sloe gin"),
    Tree("cherry", "Prunus avium", 10, "loamy", "April", "June", 1, "tarts"),
    Tree("chestnut", "Castanea sativa", 25, "sandy", "June", "October", 12, "flour"),
    Tree("cornel", "Cornus mas", 5, "chalky", "February", "August", 2, "jelly"),
    Tree("crab-apple", "Malus sylvestris", 8, "clayey", "May", "October", 8, "jelly"),
    Tree("damson", "Prunus insititia", 6, "clayey", "April", "September", 2, "jam"),
    Tree("elder", "Sambucus nigra", 6, "moist", "June", "September", 1, "cordial"),
    Tree("fig", "Ficus carica", 5, "dry", "June", "August", 1, "preserves"),
    Tree("greengage", "Prunus reineclaudiana", 6, "loamy", "April", "August", 1, "jam"),
    Tree("hawthorn", "Crataegus monogyna", 8, "chalky", "May", "October", 4, "jelly"),
    Tree("hazel", "Corylus avellana", 5, "loamy", "February", "September", 40, "paste"),
    Tree("lime", "Tilia cordata", 25, "moist", "July", "July", 50, "tea"),
    Tree("medlar", "Mespilus germanica", 5, "loamy", "June", "November", 6, "cheese"),
    Tree("mulberry", "Morus nigra", 9, "moist", "May", "August", 1, "wine"),
    Tree("nectarine", "Prunus persica nucipersica", 5, "sandy", "March", "August", 1, "sorbet"),
    Tree("olive", "Olea europaea", 8, "dry", "June", "November", 50, "oil"),
    Tree("peach", "Prunus persica", 5, "sandy", "March", "August", 1, "compote"),
    Tree("pear", "Pyrus communis", 10, "clayey", "April", "September", 8, "perry"),
    Tree("plum", "Prunus domestica", 7, "clayey", "April", "August", 1, "dumplings"),
    Tree("quince", "Cydonia oblonga", 5, "moist", "May", "October", 10, "paste"),
    Tree("rowan", "Sorbus aucuparia", 12, "sandy", "May", "September", 4, "jelly"),
    Tree("sea-buckthorn", "Hippophae rhamnoides", 4, "sandy", "April", "September", 2, "juice"),
    Tree("service-tree", "Sorbus domestica", 15, "chalky", "May", "October", 5, "cider"),
    Tree("walnut", "Juglans regia", 20, "loamy", "May", "October", 50, "pickles"),
    Tree("whitebeam", "Sorbus aria", 12, "chalky", "May", "September", 4, "bread"),
]

WORK = {
    "budding": "A single bud is slipped under the bark of the stock.",
    "composting": "Leaves and prunings become soil in a heap that is turned twice a year.",
    "feeding": "Wood ash and old manure are spread as far out as the branches reach.",
    "grafting": "A twig of the wanted kind is joined to a root that is already at home.",
    "hoeing": "The ground around a young stem is kept open, never deeper than a thumb.",
    "layering": "A low branch is pegged to the earth until it has roots of its own.",
    "mulching": "A blanket of straw keeps the water in the ground and the weeds out of it.",
    "netting": "A net goes over the crop a week before the birds know of it.",
    "pollinating": "A hive, or a patient hand with a brush, carries the pollen across.",
    "pruning": "Dead, crossing and inward branches go first; then one stands back and looks.",
    "scything": "The grass is cut twice, after the first flowers and before the first fruit.",
    "staking": "A post on the windward side holds the young tree for three years.",
    "storing": "Sound fruit lies in one layer, stalks up, in the cool and the dark.",
    "thinning": "Every second small fruit is taken so that the others may grow.",
    "training": "Young shoots are tied to wires while they still bend.",
    "watering": "One long drink a week is worth more than a sip a day.",
}

AILMENTS = {
    "aphids": ("curled leaves with sticky dew.", "soap water and ladybirds."),
    "blossom wilt": ("flowers that turn brown at once.", "cut back to sound wood."),
    "brown rot": ("rings of pale spots on the fruit.", "collect every mummy."),
    "canker": ("sunken bark that cracks in circles.", "cut it out in dry weather."),
    "codling moth": ("a worm at the core.", "bands of card around the stem."),
    "coral spot": ("orange dots on dead twigs.", "burn the twigs."),
    "fireblight": ("shoots that look scorched.", "cut a forearm below the damage."),
    "gall mites": ("red pimples on the leaves.", "none is needed."),
    "honey fungus": ("toadstools at the foot.", "dig out the stump and wait a year."),
    "leaf curl": ("blisters, first pale, then red.", "keep the rain off until May."),
    "mildew": ("a white bloom on young leaves.", "water at the root and let the air through."),
    "rust": ("orange horns under the leaf.", "part the tree from its junipers."),
    "sawfly": ("a ribbon scar on the skin.", "shake the early drops off and burn them."),
    "scab": ("olive spots on leaf and fruit.", "rake the leaves in autumn."),
    "shot hole": ("leaves like a sieve.", "a better drain."),
    "silver leaf": ("a leaden sheen.", "prune in summer only."),
    "winter moth": ("looping caterpillars in April.", "grease bands from October."),
    "woolly aphid": ("tufts of wool on the bark.", "a stiff brush."),
}

VILLAGES = [
    *("Ashcombe", "Birchet", "Coldwell", "Dunholme", "Elmstead", "Fernley", "Garside", "Hawkridge"),
    *(
        "Inglewood",
        "Kirkby",
        "Larkhill",
        "Marlow",
        "Netherby",
        "Oakhanger",
        "Penrose",
        "Quarrendon",
    ),
]

GROWERS = [
    *("Mrs Aldous", "Mr Bright", "Miss Carew", "Old Dunnett", "Mrs Eastman", "Mr Fairfax"),
    *("Miss Grey", "Mr Holloway", "Mrs Ives", "Mr Jessop", "Miss Kerridge", "Mr Loveday"),
    *("Mrs Mabb", "Mr Nettleship", "Miss Orme", "Mr Pennyfeather", "Mrs Quill", "Mr Rudge"),
]

GLOSSARY = {
    "chalky": "Of soil: pale, thin and quick to drain.",
    "clayey": "Of soil: heavy, cold in spring, and rich.",
    "dry": "Of soil: stony, on a slope that looks south.",
    "loamy": "Of soil: crumbly and dark, what everybody hopes for.",
    "moist": "Of soil: never far from a stream.",
    "sandy": "Of soil: light, warm and hungry.",
    "cordon": "A tree that is kept to a single stem.",
    "drupe": "A fruit with one stone.",
    "espalier": "A tree that is trained flat, in tiers.",
    "pome": "A fruit with a core.",
    "rootstock": "The root on which another kind is grafted.",
    "scion": "The twig that is grafted.",
    "spur": "A short branch that bears fruit year after year.",
    "sucker": "A shoot from below the graft.",
    "windfall": "Fruit that did not wait for the picker.",
}
