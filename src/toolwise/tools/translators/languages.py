"""Languages by their ISO 639-1 code: an English name for people, the codes of ISO 639-3 and of NLLB for engines.

Not covered: languages without a two-letter code, dialects, and scripts other than the usual one.
"""

from __future__ import annotations

from typing import NamedTuple

ENGLISH = "en"


class Language(NamedTuple):
    """`nllb` is the language and script as NLLB (and FLORES) write them, `spa_Latn`."""

    code: str
    nllb: str
    name: str

    @property
    def long(self) -> str:
        """ISO 639-3."""
        return self.nllb[:3]


_TABLE = """
af afr_Latn Afrikaans   am amh_Ethi Amharic      an arg_Latn Aragonese    ar arb_Arab Arabic
as asm_Beng Assamese    az azj_Latn Azerbaijani  ba bak_Cyrl Bashkir      be bel_Cyrl Belarusian
bg bul_Cyrl Bulgarian   bn ben_Beng Bengali      bo bod_Tibt Tibetan      br bre_Latn Breton
bs bos_Latn Bosnian     ca cat_Latn Catalan      cs ces_Latn Czech        cy cym_Latn Welsh
da dan_Latn Danish      de deu_Latn German       el ell_Grek Greek        en eng_Latn English
eo epo_Latn Esperanto   es spa_Latn Spanish      et est_Latn Estonian     eu eus_Latn Basque
fa pes_Arab Persian     fi fin_Latn Finnish      fo fao_Latn Faroese      fr fra_Latn French
ga gle_Latn Irish       gd gla_Latn Gaelic       gl glg_Latn Galician     gn grn_Latn Guarani
gu guj_Gujr Gujarati    he heb_Hebr Hebrew       hi hin_Deva Hindi        hr hrv_Latn Croatian
ht hat_Latn Haitian     hu hun_Latn Hungarian    hy hye_Armn Armenian     id ind_Latn Indonesian
is isl_Latn Icelandic   it ita_Latn Italian      ja jpn_Jpan Japanese     jv jav_Latn Javanese
ka kat_Geor Georgian    kk kaz_Cyrl Kazakh       km khm_Khmr Khmer        kn kan_Knda Kannada
ko kor_Hang Korean      ku kmr_Latn Kurdish      ky kir_Cyrl Kyrgyz       la lat_Latn Latin
lb ltz_Latn Luxembourgish lo lao_Laoo Lao        lt lit_Latn Lithuanian   lv lvs_Latn Latvian
mg plt_Latn Malagasy    mk mkd_Cyrl Macedonian   ml mal_Mlym Malayalam    mn khk_Cyrl Mongolian
mr mar_Deva Marathi     ms zsm_Latn Malay        mt mlt_Latn Maltese      my mya_Mymr Burmese
ne npi_Deva Nepali      nl nld_Latn Dutch        nn nno_Latn Nynorsk      no nob_Latn Norwegian
oc oci_Latn Occitan     or ory_Orya Odia         pa pan_Guru Punjabi      pl pol_Latn Polish
ps pbt_Arab Pashto      pt por_Latn Portuguese   ro ron_Latn Romanian     ru rus_Cyrl Russian
sa san_Deva Sanskrit    sc srd_Latn Sardinian    sd snd_Arab Sindhi       sh hbs_Latn Serbo-Croatian
si sin_Sinh Sinhala     sk slk_Latn Slovak       sl slv_Latn Slovenian    so som_Latn Somali
sq als_Latn Albanian    sr srp_Cyrl Serbian      su sun_Latn Sundanese    sv swe_Latn Swedish
sw swh_Latn Swahili     ta tam_Taml Tamil        te tel_Telu Telugu       tg tgk_Cyrl Tajik
th tha_Thai Thai        tk tuk_Latn Turkmen      tl tgl_Latn Tagalog      tr tur_Latn Turkish
tt tat_Cyrl Tatar       ug uig_Arab Uyghur       uk ukr_Cyrl Ukrainian    ur urd_Arab Urdu
uz uzn_Latn Uzbek       vi vie_Latn Vietnamese   yi ydd_Hebr Yiddish      yo yor_Latn Yoruba
zh zho_Hans Chinese
"""
_WORDS = _TABLE.split()

LANGUAGES = {code: Language(code, *rest) for code, *rest in zip(*[iter(_WORDS)] * 3, strict=True)}
_BY_LONG = {language.long: code for code, language in LANGUAGES.items()}


def named(code: str) -> str:
    """`Spanish (es)`; the code alone where its name is not known here."""
    return f"{LANGUAGES[code].name} ({code})" if code in LANGUAGES else code


def listed(codes: frozenset[str]) -> str:
    """`Catalan (ca), French (fr)`."""
    return ", ".join(sorted(map(named, codes)))


def short(code: str) -> str | None:
    """The ISO 639-1 code of a language given by its two- or three-letter code; None where it is not known here."""
    return code if code in LANGUAGES else _BY_LONG.get(code)
