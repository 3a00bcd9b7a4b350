//! English-like prose from a seed. It compresses like real prose: zlib makes it 2.3 to 2.8 times
//! smaller.

/// A random number generator (splitmix64): a seed gives the same library on every machine.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Returns true once in `n` times on average.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Chooses a word, the early ones more often, as in natural language.
    fn word<'w>(&mut self, list: &[&'w str]) -> &'w str {
        let n = list.len() as f64;
        // Between Zipf's law and a uniform choice.
        let rank = if self.once_in(3) { n.powf(self.unit()) - 1.0 } else { n * self.unit() };
        list[(rank as usize).min(list.len() - 1)]
    }
}

/// Writes about `length` bytes of narration, dialogue and actions in paragraphs.
pub fn story(random: &mut Random, length: usize) -> String {
    let mut text = String::with_capacity(length + 200);
    while text.len() < length {
        if !text.is_empty() {
            text.push_str(if random.once_in(3) { "\n\n" } else { " " });
        }
        match random.below(5) {
            0 => {
                text.push('*');
                sentence(random, &mut text);
                text.push('*');
            }
            1 | 2 => {
                text.push('"');
                sentence(random, &mut text);
                text.push('"');
                text.push_str(" she ");
                text.push_str(random.word(VERBS));
                text.push('.');
            }
            _ => sentence(random, &mut text),
        }
    }
    text
}

pub fn name(random: &mut Random) -> String {
    let mut text = String::new();
    rare_word(random, &mut text);
    text[..1].make_ascii_uppercase();
    text
}

/// Sentence patterns: one letter per kind of word.
const SHAPES: &[&str] = &[
    "dn v dan",
    "N v p dn c v a",
    "dan v o p dan",
    "r, N v dn p d a, an",
    "N c N v o r",
    "p dan, dn v p N",
    "dn p dn v an c v r",
    "o v dn, c o v p dan",
    "N v o r c v dn p dan",
];

fn sentence(random: &mut Random, text: &mut String) {
    let begin = text.len();
    for shape in SHAPES[random.below(SHAPES.len())].chars() {
        let list = match shape {
            'd' => DETERMINERS,
            'n' => NOUNS,
            'v' => VERBS,
            'a' => ADJECTIVES,
            'r' => ADVERBS,
            'p' => PREPOSITIONS,
            'c' => CONJUNCTIONS,
            'o' => PRONOUNS,
            'N' => NAMES,
            ',' => {
                text.push(',');
                continue;
            }
            _ => continue,
        };
        if text.len() > begin {
            text.push(' ');
        }
        match shape {
            'n' | 'v' | 'a' if random.once_in(RARE) => rare_word(random, text),
            _ => text.push_str(random.word(list)),
        }
        if shape == 'n' && random.once_in(4) {
            text.push('s');
        }
    }
    if let Some(first) = text.get_mut(begin..begin + 1) {
        first.make_ascii_uppercase();
    }
    text.push(match random.below(12) {
        0 => '?',
        1 => '!',
        _ => '.',
    });
}

/// One in this many words is not from the lists, which have only six hundred words.
const RARE: usize = 2;
const RARE_WORDS: f64 = 20_000.0;

/// Writes an invented word; a few of them are frequent, most are rare.
fn rare_word(random: &mut Random, text: &mut String) {
    let rank = (RARE_WORDS * random.unit() * random.unit()) as u64;
    let mut letters = Random::new(rank);
    for _ in 0..2 + letters.below(2) {
        for part in [ONSETS, VOWELS, CODAS] {
            text.push_str(part[letters.below(part.len())]);
        }
    }
}

#[rustfmt::skip]
const ONSETS: &[&str] = &[
    "b", "c", "d", "f", "g", "h", "l", "m", "n", "p", "r", "s", "t", "v", "w", "st", "tr", "gr",
    "sh", "ch", "pl", "br", "th", "cl",
];
const VOWELS: &[&str] = &["a", "e", "i", "o", "u", "ea", "ou", "ai", "ee", "o", "a", "e"];
const CODAS: &[&str] = &["", "", "", "n", "r", "s", "t", "l", "m", "nd", "st", "ck"];

#[rustfmt::skip]
const DETERMINERS: &[&str] = &[
    "the", "a", "her", "his", "this", "that", "every", "no", "some", "one", "another", "their",
    "my", "your", "each", "any", "either", "our",
];
#[rustfmt::skip]
const PRONOUNS: &[&str] = &[
    "it", "you", "she", "he", "they", "nobody", "someone", "we", "everything", "I", "nothing",
    "both of them", "who", "anyone",
];
#[rustfmt::skip]
const PREPOSITIONS: &[&str] = &[
    "in", "of", "on", "with", "under", "behind", "from", "into", "toward", "beyond", "over",
    "between", "through", "against", "beside", "without", "across", "past", "along", "around",
    "above", "near", "within", "after", "before",
];
#[rustfmt::skip]
const CONJUNCTIONS: &[&str] = &[
    "and", "but", "while", "because", "until", "as if", "though", "or", "so", "where", "when",
    "before", "unless", "since",
];
#[rustfmt::skip]
const NAMES: &[&str] = &[
    "Mira", "Wren", "Captain Oduya", "the harbour master", "Ilse", "Tobias", "old Henrick",
    "the cartographer", "Sable", "Doctor Vance", "Petra", "the twins", "Ambrose", "Lady Corvin",
    "Jun", "the ferryman", "Rosalind", "Brother Aldous", "Kestrel", "the innkeeper",
];
#[rustfmt::skip]
const ADVERBS: &[&str] = &[
    "slowly", "again", "quietly", "never", "almost", "suddenly", "carefully", "still", "softly",
    "at last", "barely", "gently", "perhaps", "somewhere", "without a word", "too quickly",
    "anyway", "for a moment", "deliberately", "twice", "elsewhere", "faintly", "abruptly",
    "reluctantly", "in silence", "sideways", "patiently", "together", "underneath", "long ago",
    "nervously", "upstairs", "tonight", "warily", "outside", "evenly", "instead", "absently",
];
#[rustfmt::skip]
const ADJECTIVES: &[&str] = &[
    "old", "dark", "quiet", "cold", "small", "pale", "long", "broken", "wet", "bright", "empty",
    "narrow", "heavy", "strange", "silver", "warm", "soft", "distant", "sharp", "hollow", "green",
    "forgotten", "careful", "rusted", "thin", "golden", "restless", "salt-stained", "crooked",
    "gentle", "bitter", "wooden", "unfinished", "velvet", "stubborn", "brittle", "drowned",
    "familiar", "impossible", "tired", "grey", "copper", "weathered", "uneasy", "hungry", "faded",
    "deep", "crimson", "patient", "tangled", "honest", "feverish", "polished", "ragged", "secret",
    "shallow", "amused", "wary", "sleepless", "half-open", "scarred", "ancient", "moonlit",
    "clumsy", "fragile", "solemn", "dusty", "frozen", "guilty", "idle", "jagged", "lonely",
    "muffled", "nameless", "ornate", "plain", "quick", "rough", "slender", "thorny", "upright",
    "vivid", "wicked", "young", "borrowed", "smoky", "sullen", "tidal", "unkind", "weary",
];
#[rustfmt::skip]
const VERBS: &[&str] = &[
    "said", "looked", "took", "turned", "held", "left", "knew", "found", "watched", "opened",
    "whispered", "answered", "touched", "waited", "closed", "carried", "smiled", "followed",
    "remembered", "pulled", "leaned", "asked", "moved", "listened", "wanted", "pointed",
    "laughed", "dropped", "promised", "traced", "shook", "nodded", "kept", "frowned", "counted",
    "lifted", "murmured", "stepped", "hesitated", "folded", "breathed", "gathered", "lost",
    "trusted", "poured", "circled", "guarded", "muttered", "unrolled", "broke", "climbed",
    "studied", "hid", "called", "feared", "burned", "tilted", "searched", "paused", "drew",
    "struck", "balanced", "measured", "sighed", "gripped", "wandered", "explained", "vanished",
    "stirred", "returned", "offered", "scratched", "steadied", "swallowed", "tapped",
    "understood", "wiped", "believed", "crossed", "denied", "echoed", "forgave", "glanced",
    "hummed", "insisted", "joked", "knelt", "lingered", "mended", "noticed", "owed", "pressed",
    "quarrelled", "rested", "shivered", "trembled", "uncovered", "ventured", "weighed", "yielded",
    "bargained", "drifted",
];
#[rustfmt::skip]
const NOUNS: &[&str] = &[
    "door", "hand", "light", "voice", "water", "room", "night", "eye", "table", "tide", "window",
    "street", "letter", "ship", "map", "face", "shadow", "lantern", "word", "fire", "rain",
    "stair", "name", "key", "road", "river", "coat", "knife", "bell", "harbour", "story", "wall",
    "cup", "silence", "chart", "stranger", "tower", "mirror", "finger", "storm", "garden", "debt",
    "smile", "bridge", "candle", "ferry", "crown", "market", "ledger", "gate", "secret", "boat",
    "roof", "question", "bottle", "ghost", "forest", "coin", "question", "promise", "sailor",
    "glass", "blanket", "compass", "hour", "shoulder", "answer", "village", "bone", "library",
    "rope", "memory", "thief", "kitchen", "song", "feather", "corridor", "cloak", "dagger",
    "shelf", "sister", "wound", "anchor", "apology", "arrow", "basket", "beacon", "blade",
    "bookcase", "boot", "brother", "cathedral", "cellar", "chain", "chimney", "clock", "corner",
    "cottage", "courtyard", "crate", "curtain", "dawn", "dream", "drawer", "echo", "ember",
    "engine", "envelope", "evening", "favour", "fence", "fever", "flute", "fog", "footstep",
    "fountain", "gesture", "glove", "grave", "guard", "gull", "hallway", "hammer", "hinge",
    "horizon", "inkwell", "island", "journal", "kettle", "kingdom", "ladder", "leaf", "lie",
    "lighthouse", "lock", "machine", "mask", "mast", "moon", "morning", "mountain", "needle",
    "oar", "oath", "orchard", "painting", "palm", "path", "pearl", "pillar", "pocket", "poison",
    "portrait", "prayer", "prisoner", "puzzle", "quarrel", "quill", "raven", "recipe", "ribbon",
    "ring", "rumour", "sail", "satchel", "scar", "seam", "sentence", "signal", "skin", "sleeve",
    "smoke", "spell", "spoon", "spring", "statue", "stone", "table", "tavern", "tea", "teacher",
    "temple", "thread", "throat", "thunder", "torch", "trader", "tunnel", "veil", "violin",
    "visitor", "warning", "weapon", "well", "whistle", "winter", "witness", "wolf", "wreck",
];
