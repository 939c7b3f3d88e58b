"""The first article of the Universal Declaration of Human Rights in languages that the web wrote before UTF-8, with the
encodings it wrote them in. The texts are the United Nations' and in the public domain."""

from __future__ import annotations

CORPUS: dict[str, tuple[str, tuple[str, ...]]] = {
    "ar": (
        "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق. وقد وهبوا عقلا وضميرا وعليهم أن يعامل بعضهم "
        "بعضا بروح "
        "الإخاء.",
        ("windows-1256", "iso-8859-6"),
    ),
    "bg": (
        "Всички хора се раждат свободни и равни по достойнство и права. Те са надарени с разум и съвест и следва "
        "да се "
        "отнасят помежду си в дух на братство.",
        ("windows-1251",),
    ),
    "cs": (
        "Všichni lidé rodí se svobodní a sobě rovní co do důstojnosti a práv. Jsou nadáni rozumem a svědomím "
        "a mají "
        "spolu jednat v duchu bratrství.",
        ("windows-1250", "iso-8859-2"),
    ),
    "de": (
        "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen "
        "begabt und "
        "sollen einander im Geiste der Brüderlichkeit begegnen.",
        ("windows-1252",),
    ),
    "el": (
        "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. Είναι "
        "προικισμένοι με "
        "λογική και συνείδηση, και οφείλουν να συμπεριφέρονται μεταξύ τους με πνεύμα αδελφοσύνης.",
        ("windows-1253", "iso-8859-7"),
    ),
    "es": (
        "Todos los seres humanos nacen libres e iguales en dignidad y derechos y, dotados como están de "
        "razón y "
        "conciencia, deben comportarse fraternalmente los unos con los otros.",
        ("windows-1252",),
    ),
    "et": (
        "Kõik inimesed sünnivad vabadena ja võrdsetena oma väärikuselt ja õigustelt. Neile on antud mõistus ja "
        "südametunnistus ja nende suhtumist üksteisesse peab kandma vendluse vaim.",
        ("windows-1257",),
    ),
    "fr": (
        "Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison "
        "et de "
        "conscience et doivent agir les uns envers les autres dans un esprit de fraternité.",
        ("windows-1252", "iso-8859-15"),
    ),
    "he": (
        "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. כולם חוננו בתבונה ובמצפון, לפיכך חובה עליהם "
        "לנהוג איש "
        "ברעהו ברוח של אחווה.",
        ("windows-1255", "iso-8859-8"),
    ),
    "hu": (
        "Minden emberi lény szabadon születik és egyenlő méltósága és joga van. Az emberek, ésszel "
        "és lelkiismerettel "
        "bírván, egymással szemben testvéri szellemben kell hogy viseltessenek.",
        ("windows-1250", "iso-8859-2"),
    ),
    "ja": (
        "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。人間は、理性と良心とを授けられており、"
        "互いに同胞の精神をもって行動しなければならない。",
        ("shift_jis", "euc-jp", "iso-2022-jp"),
    ),
    "ko": (
        "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 인간은 천부적으로 "
        "이성과 양심을 부여받았으며 서로 "
        "형제애의 정신으로 행동하여야 한다.",
        ("euc-kr",),
    ),
    "lt": (
        "Visi žmonės gimsta laisvi ir lygūs savo orumu ir teisėmis. Jiems suteiktas protas ir sąžinė ir jie "
        "turi elgtis "
        "vienas kito atžvilgiu kaip broliai.",
        ("windows-1257",),
    ),
    "pl": (
        "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są oni obdarzeni "
        "rozumem i "
        "sumieniem i powinni postępować wobec innych w duchu braterstwa.",
        ("windows-1250", "iso-8859-2"),
    ),
    "pt": (
        "Todos os seres humanos nascem livres e iguais em dignidade e em direitos. Dotados de razão e "
        "de consciência, "
        "devem agir uns para com os outros em espírito de fraternidade.",
        ("windows-1252",),
    ),
    "ru": (
        "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью "
        "и должны "
        "поступать в отношении друг друга в духе братства.",
        ("windows-1251", "koi8-r", "iso-8859-5", "ibm866", "x-mac-cyrillic"),
    ),
    "sv": (
        "Alla människor är födda fria och lika i värde och rättigheter. De är utrustade med förnuft och samvete "
        "och bör "
        "handla gentemot varandra i en anda av broderskap.",
        ("windows-1252",),
    ),
    "th": (
        "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ต่างมีเหตุผลและมโนธรรม และควรปฏิบัติต่อกันด้วยเจตนารมณ์แห่งภราดรภาพ",
        ("windows-874",),
    ),
    "tr": (
        "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana sahiptirler "
        "ve birbirlerine "
        "karşı kardeşlik zihniyeti ile hareket etmelidirler.",
        ("windows-1254",),
    ),
    "uk": (
        "Всі люди народжуються вільними і рівними у своїй гідності та правах. Вони наділені розумом і совістю "
        "і повинні "
        "діяти у відношенні один до одного в дусі братерства.",
        ("windows-1251", "koi8-u"),
    ),
    "zh-Hans": (
        "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。",
        ("gbk", "gb18030"),
    ),
    "zh-Hant": (
        "人人生而自由，在尊嚴和權利上一律平等。他們賦有理性和良心，並應以兄弟關係的精神互相對待。",
        ("big5",),
    ),
}
"""Language: text, and WHATWG names of the encodings it is tried in (every one of them, UTF-8 and UTF-16 apart)."""

PYTHON_CODECS = {
    "windows-874": "cp874",
    "shift_jis": "cp932",
    "euc-kr": "cp949",
    "iso-8859-8": "iso8859-8",
    "x-mac-cyrillic": "mac-cyrillic",
}
