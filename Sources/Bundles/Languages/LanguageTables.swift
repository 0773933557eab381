/// What is known of languages: CLDR's `likelySubtags`, `parentLocales` and `languageAlias`, in the edition that
/// Foundation's ICU has, and Apple's parents of English. `LanguageMatcherTests` compares the results with ICU's.
enum LanguageTables {
  /// The script of a language: Latin unless it is in the table.
  static func script(of language: String, region: String?) -> String {
    if language == "zh", let region, traditionalRegions.contains(region) { return "Hant" }
    return scripts[language] ?? "Latn"
  }

  /// The region in which a language is likely: the one of the same name (`fr`, `FR`) unless it is in the table.
  static func region(of language: String, script: String) -> String {
    if language == "zh", script == "Hant" { return "TW" }
    return regions[language] ?? language.uppercased()
  }

  /// The region whose form of a language that of another region inherits: `GB` for `en-AU`; nil for the language.
  static func parent(of region: String, in language: String, script: String) -> String? {
    switch language {
    case "en": englishParents[region]
    case "es": spanishParents[region]
    case "pt": portugueseParents[region]
    case "zh", "yue": region == "MO" && script == "Hant" ? "HK" : nil
    default: nil
    }
  }

  /// The languages that a language inherits from.
  static let parents = ["nb": ["no"], "nn": ["no"], "yue": ["zh"]]

  /// Languages that serve for one that is missing, with its parents.
  static let substitutes = ["nn": ["nb"], "no": ["nb", "nn"], "zh": ["yue"]]

  /// Tags that others have replaced, and those of single languages of a group.
  static let aliases = [
    "iw": "he", "in": "id", "ji": "yi", "jw": "jv", "mo": "ro", "tl": "fil", "sh": "sr-Latn", "cmn": "zh",
    "prs": "fa-AF", "swc": "sw-CD", "gom": "kok", "tw": "ak", "fat": "ak",
  ]

  /// The names of localizations before Mac OS X 10.4.
  static let names = [
    "English": "en", "French": "fr", "German": "de", "Italian": "it", "Dutch": "nl", "Japanese": "ja",
    "Spanish": "es", "Portuguese": "pt", "Swedish": "sv", "Danish": "da", "Finnish": "fi", "Norwegian": "nb",
    "Korean": "ko", "Russian": "ru", "Polish": "pl", "Turkish": "tr", "Greek": "el", "Hebrew": "he",
    "Arabic": "ar", "Thai": "th", "Hungarian": "hu", "Icelandic": "is", "Czech": "cs",
  ]

  private static let traditionalRegions: Set<String> = [
    "AU", "BN", "GB", "GF", "HK", "ID", "MO", "PA", "PF", "PH", "SR", "TH", "TW", "VN",
  ]

  private static let scripts = inverted(
    """
    Arab:ar,ckb,fa,ks,lrc,mzn,ps,sd,ug,ur Armn:hy Avst:ae Beng:as,bn,mni Cakm:ccp Cans:cr,csw,iu,oj \
    Cher:chr Cyrl:ab,av,ba,be,bg,ce,cu,cv,inh,kk,kv,ky,mk,mn,myv,os,ru,sah,sjd,sr,tg,tt,uk \
    Deva:bgc,bho,brx,doi,hi,kok,mai,mr,ne,raj,sa,xnr Ethi:am,byn,gez,ti,tig,wal Geor:ka Grek:el \
    Gujr:gu Guru:pa Hans:zh Hant:yue Hebr:he,yi Hmng:hmn Jpan:ja Kana:ain Khmr:km Knda:kn Kore:ko \
    Laoo:lo Mand:mid Mlym:ml Mymr:my Nkoo:nqo Olck:sat Orya:or Osge:osa Rohg:rhg Sinh:pi,si \
    Syrc:syr Taml:ta Telu:te Tfng:ber,shi,zgh Thaa:dv Thai:th Tibt:bo,dz Vaii:vai Wcho:nnp Yiii:ii
    """)

  private static let regions = inverted(
    """
    AF:ps AL:sq AM:hy BA:bs BD:bn,ccp BE:wa BI:rn BJ:blo BO:ay BR:kgp,pt,yrl BT:dz BY:be \
    CA:cr,csw,iu,mic,moh,oj,pqm CD:kg,ln,lu CF:sg CH:gsw,rm,wae CL:arn \
    CM:agq,bas,dua,ewo,jgo,kkj,ksf,mgo,mua,nmg,nnh,yav CN:bo,hmn,ii,ug,za,zh CV:kea CZ:cs \
    DE:dsb,hsb,ksh,nds DK:da DZ:kab EE:et,ie EG:ar ER:byn,tig ES:an,ast,ca,eu,gl \
    ET:aa,am,gez,om,ti,wal FI:smn FR:br,co,oc GB:cy,gd,kw GE:ab,ka,os GH:ak,ee,gaa GL:kl GN:nqo \
    GR:el GU:ch HK:yue ID:jv,rej,su IE:ga IL:he IM:gv \
    IN:as,bgc,bho,brx,doi,gu,hi,kn,kok,ks,kxv,mai,ml,mni,mr,nnp,or,pa,pi,raj,sa,sat,ta,te,xnr \
    IQ:ckb,mid,syr IR:ae,fa,lrc,mzn IT:fur,lij,lmo,sc,scn,vec JP:ain,ja \
    KE:dav,ebu,guz,kam,ki,kln,luo,luy,mas,mer,saq KG:ky KH:km KR:ko KZ:kk LA:lo LK:si LR:kpe,vai \
    LU:lb MA:ber,shi,tzm,zgh ML:bm,khq,ses MM:my,rhg MU:mfe MV:dv MW:ny MY:ms MZ:mgh,seh,vmw \
    NA:hz,kj,naq,ng NE:dje,twq NG:ha,ig,kaj,kcg,kr,pcm,yo NL:fy,li NO:nb,nn,se NP:ne NR:na NZ:mi \
    PE:qu PF:ty PG:ho PH:ceb,fil PK:sd,ur PL:prg,szl PY:gn RS:sr \
    RU:av,ba,ce,cu,cv,inh,kv,myv,sah,sjd,tt SE:sje,sju,sv SI:sl SN:dyo,ff,wo SS:nus TJ:tg TM:tk \
    TR:ku TW:trv TZ:asa,bez,jmc,kde,ksb,lag,rof,rwk,sbp,sw,vun UA:uk,yi UG:cgg,lg,nyn,teo,xog \
    US:apw,cho,chr,cic,en,haw,ik,lkt,lut,mus,nv,osa VA:la VN:vi VU:bi WS:sm \
    ZA:af,nr,nso,ss,st,tn,ts,ve,xh,zu ZM:bem ZW:nd,sn
    """)

  private static let englishParents = inverted(
    """
    001:AF,AM,AO,AR,AW,AX,AZ,BF,BH,BJ,BL,BO,BQ,BR,CD,CF,CG,CI,CM,CR,CU,CV,DO,DZ,EC,EG,EH,ER,ET,\
    FM,GA,GB,GF,GN,GP,GQ,GT,HN,HT,IC,ID,IL,IQ,JO,KG,KH,KM,KW,KZ,LA,LB,LR,LY,MA,MF,MG,ML,MM,MN,MQ,MR,\
    MZ,NC,NE,NI,NP,OM,PE,PF,PM,PS,PW,QA,RE,RW,SJ,SM,SN,SO,ST,SV,SX,SY,TD,TF,TG,TH,TJ,TK,TL,TM,\
    TN,UY,UZ,VE,VN,WF,YE,YT \
    150:AD,AL,AT,BA,BE,BG,BY,CH,CY,CZ,DE,DK,EE,ES,FI,FO,FR,GE,GL,GR,HR,HU,IS,IT,LI,LT,LU,LV,MC,MD,\
    ME,MK,NL,NO,PL,PT,RO,RS,RU,SE,SI,SK,UA,VA AU:CC,CK,CX,NF,NR,NU,NZ,PG,WS \
    GB:150,AG,AI,AU,BB,BD,BM,BN,BS,BW,BZ,DG,DM,FJ,FK,GD,GG,GH,GI,GM,GY,HK,IE,IM,IN,IO,JE,JM,KE,KI,KN,\
    KY,LC,LK,LS,MO,MS,MT,MU,MV,MW,MY,NA,NG,PK,PN,SB,SC,SD,SG,SH,SL,SS,SZ,TC,TO,TT,TV,TZ,UG,VC,VG,VU,ZA,\
    ZM,ZW
    """)

  private static let spanishParents = inverted(
    """
    419:AG,AI,AR,AW,BB,BL,BM,BO,BQ,BR,BS,BZ,CA,CL,CO,CR,CU,CW,DM,DO,EC,FK,GD,GF,GL,GP,GT,GY,HN,HT,\
    JP,KN,KY,LC,MF,MQ,MS,MX,NI,PA,PE,PM,PR,PY,SR,SV,SX,TC,TT,US,UY,VC,VE,VG,VI
    """)

  private static let portugueseParents = inverted("PT:AO,CH,CV,FR,GQ,GW,LU,MO,MZ,ST,TL")

  /// `GB:AU,IN` gives `AU` and `IN` the value `GB`.
  private static func inverted(_ text: String) -> [String: String] {
    var table: [String: String] = [:]
    for line in text.split(separator: " ") {
      let parts = line.split(separator: ":")
      for key in parts[1].split(separator: ",") { table[String(key)] = String(parts[0]) }
    }
    return table
  }
}
