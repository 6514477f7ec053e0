import { SIGN_IN_WORDS } from './code-words.js'
import { upTo } from './mentions.js'
import { Vocabulary, words, type Found } from './vocabulary.js'

/** The action that a sentence asks for with a number in it. */
export interface Instruction {
  /** `entering` means to type the number, `using` to use it or give it to somebody. */
  kind: 'entering' | 'using'
  /** Whether the sentence names a purpose of codes. */
  hasPurpose: boolean
}

const MAX_GAP_BEFORE = 40
const MAX_GAP_AFTER = 24

/**
 * The instruction for a number. `before` is its sentence up to the number, `after` the text after it, both in lower
 * case. In many languages the verb comes after the number: "604418 を入力", "604418 kodunu girin". If `labelEnd` is set,
 * words up to that position name another kind of number, so only a later verb before the number counts.
 */
export function instructionAround(before: string, after: string, labelEnd = 0): Instruction | null {
  const rest = upTo(after, /[.!?;。！？；\n]/)
  const ahead = before.slice(-120)
  const minStart = labelEnd - (before.length - ahead.length)
  const leading = verbIn(VERBS_BEFORE.wordsIn(ahead), ({ start, end }) => {
    return start >= minStart && isShortGap(ahead.slice(end), MAX_GAP_BEFORE)
  })
  const near = rest.slice(0, 60)
  const verb =
    leading ??
    (labelEnd > 0
      ? null
      : verbIn(VERBS_AFTER.wordsIn(near), ({ start }) => isShortGap(near.slice(0, start), MAX_GAP_AFTER)))
  if (verb === null) return null
  // In "to open 120433 accounts" the verb is not its own purpose.
  const preamble = leading === null ? ahead : ahead.slice(0, leading.start)
  return { kind: verb.kind, hasPurpose: [rest, preamble].some((text) => PURPOSES.matches(text)) }
}

/** Whether a lower-case text tells its reader to type something. */
export function hasEnteringVerb(text: string): boolean {
  const kinds = VERBS_BEFORE.kindsIn(text)
  return kinds.has('entering') || VERBS_AFTER.kindsIn(text).has('entering')
}

type Verb = Found<Instruction['kind']>

/**
 * The last verb for entering that is near the number, or else the first for using. Null if the sentence forbids it:
 * "Never use 123456".
 */
function verbIn(
  found: readonly Found<Instruction['kind'] | 'forbidding'>[],
  isNear: (word: Verb) => boolean,
): Verb | null {
  let verb: Verb | null = null
  for (const { kind, start, end } of found) {
    if (kind === 'forbidding') return null
    if (isNear({ kind, start, end }) && (verb === null || kind === 'entering')) verb = { kind, start, end }
  }
  return verb
}

function isShortGap(gap: string, maxLength: number): boolean {
  return gap.length <= maxLength && !/[\d,;!?，；]/.test(gap)
}

/** Verbs for typing a number. */
const ENTERING_WORDS = words({
  English: `
    ^enter$, ^entering$, ^copy$, ^type$, ^typing$, ^key in, ^input$, ^paste$, ^punch in, ^fill in, ^submit$,
    open it with, unlock it with, open with, unlock with, ^open the locker with, ^reply with, ^respond with`,
  'German, Dutch, Nordic': `
    {^geben sie|^tippen sie|^tragen sie|^tippe|^trage|^fügen sie|^füge}{$}, ^gib$, ^gebt$, ^tippt$,
    ^eingabe von, öffnen sie es mit, öffnen sie das fach mit, öffne es mit, öffne das fach mit, ^voer$, ^typ$,
    ^vul$, ^toets$, ^plak$, ^ange$, ^angiv$, ^skriv in, ^skriv$, ^mata in, ^fyll i, ^knappa in, ^slå in,
    ^klistra in, ^indtast, ^tast$, ^taste$, ^tast inn, ^oppgi, ^opgiv, ^skriv inn, ^skriv ind, ^legg inn,
    ^fyll inn, ^syötä, ^anna$, ^kirjoita, ^näppäile, ^syöttä, ^liitä$, ^sláðu inn`,
  'French, Spanish, Catalan, Portuguese, Italian, Romanian': `
    ^saisissez, ^saisis$, ^saisir, ^entrez, ^tapez, ^tape$, ^taper$, ^composez, ^inscrivez, ^renseignez,
    ^indiquez, ^collez, ^introduce, ^introduzca, ^introducir, ^introdueix, ^introduïu, ^ingresa$, ^ingresá$,
    ^ingrese$, ^ingresar, ^escribe$, ^escriba$, ^teclea, ^teclee, ^digita, ^digite, ^digitar, ^pega$, ^pegue$,
    ^insira, ^inserir, ^introduza, ^informe$, ^escreva, ^cole$, ^inserisci, ^inserire, ^inserite, ^digitare,
    ^immetti, ^immettere, ^scrivi$, ^incolla, ^introdu, ^introduceți, ^introduceţi, ^tastează, ^tastați,
    ^scrie$, ^insereaz`,
  Slavic: `
    ^wpisz, ^wpisać, ^wprowadź, ^wprowadzić, ^podaj, ^przepisz, ^wklej, ^wstukaj, ^zadejte, ^zadej$, ^zadat$,
    ^vložte, ^vlož$, ^napište, ^opište, ^přepište, ^zadajte, ^zadaj$, ^zadať, ^vpíšte, ^unesite, ^unesi$,
    ^upišite, ^upiši, ^ukucajte, ^vnesite, ^vnesi$, ^vpišite, ^vtipkajte, ^введите, ^введи$, ^ввести, ^вводите,
    ^укажите, ^наберите, ^впишите, ^вставьте, ^введіть, ^впишіть, ^вкажіть, ^наберіть, ^уведіть, ^въведете,
    ^въведи, ^въвеждане, ^напишете, ^унесите, ^унеси$, ^укуцајте, ^внесете, ^увядзіце`,
  'Hungarian, Baltic, Greek, Albanian': `
    ^adja meg, ^add meg, ^írja be, ^írd be, ^üsse be, ^gépelje, ^sisesta, ^trüki, ^ievadi, ^rakstiet, ^įveskite,
    ^įvesk$, ^įrašyk, ^εισαγάγετε, ^εισάγετε, ^πληκτρολογ, ^γράψτε, ^βάλτε, ^καταχωρ, ^shkruani, ^shkruaj,
    ^vendosni, ^futni$`,
  'Arabic, Persian, Urdu, Hebrew': `
    أدخل, ادخل_, إدخال, اكتب, ^הזן$, ^הזינ, ^הקלד, ^הקליד, ^הקש$, ^הקיש, ^להזין, ^להקליד, ^הכנס$, ^הכניס`,
  'South-East Asian, African': `
    กรอก, ป้อน, พิมพ์, ใส่, ^nhập, ^điền, ^gõ_, ^masukkan, ^masukan$, ^ketik, ^isikan, ^taip$, ^ingiza, ^weka$,
    ^andika$, ^ilagay, ^i-type, បញ្ចូល`,
  'Chinese, Japanese, Korean': `
    输入, 輸入, 填写, 填寫, 键入, 鍵入, 填入`,
})

/**
 * Verbs for using or giving a number. In "use 493201 to sign in" they have a purpose. Without one, they count only in
 * mail about a parcel or a ride.
 */
const USING_WORDS = words(`
  ^use$, ^using$, ^give$, ^tell$, ^show$, ^quote$, ^say$, ^read out, ^provide$, ^present$, ^share$, ^open$,
  ^unlock$, ^with$, ^hand over, ^mention$, ^press$, ^dial in$, ^punch$, ^put$, ^add$, ^verwende, ^nutze,
  ^benutze, ^nennen, ^nenne$, ^zeigen, ^zeige$, ^sagen sie, ^sag$, ^mit$, ^öffne, ^gebruik, ^geef$, ^toon$,
  ^noem$, ^zeg$, ^laat$, ^använd, ^uppge, ^visa$, ^säg$, ^lämna, ^slå$, ^tryck, ^öppna, ^bruk$, ^brug$, ^anvend,
  ^benytt, ^vis$, ^fortell, ^fortæl, ^åbn$, ^åpne, ^käytä, ^kerro, ^näytä, ^avaa, ^notaðu, ^utilisez, ^utilise$,
  ^utiliser, ^donnez, ^donne$, ^communiquez, ^présentez, ^montrez, ^indique$, ^dites, ^ouvrez, ^avec$, ^usa$,
  ^use o, ^usar$, ^utiliza$, ^utilice, ^utilizar, ^muestra$, ^muestre$, ^presenta$, ^presente$, ^abre$, ^abra$,
  ^dile$, ^marca$, ^marque$, ^marcar$, ^pulsa$, ^pulse$, ^diga$, ^dígale, ^indica$, ^indique, ^facilita,
  ^proporciona, ^fes servir, ^utilitza, ^utilize, ^mostre, ^apresente, ^informe, ^forneça, ^utilizza, ^usare$,
  ^mostra$, ^mostrare, ^comunica, ^fornisci, ^apri$, ^aprire$, ^folosește, ^folosiți, ^utilizați, ^spune,
  ^arată, ^prezint, ^comunic, ^deschide, ^użyj, ^użyć, ^pokaż, ^powiedz, ^przekaż, ^okaż, ^otwórz, ^použijte,
  ^použij, ^použite, ^použi, ^sdělte, ^řekněte, ^ukažte, ^nahlaste, ^nahláste, ^otevřete, ^povedzte, ^ukážte,
  ^otvorte, ^koristite, ^upotrijebite, ^recite, ^pokažite, ^uporabite, ^povejte, ^используйте, ^назовите,
  ^сообщите, ^покажите, ^предъявите, ^скажите, ^откройте, ^використайте, ^використовуйте, ^назвіть, ^повідомте,
  ^покажіть, ^скажіть, ^відкрийте, ^използвайте, ^използвай, ^кажете, ^покажете, ^користите, ^кажите,
  ^használja, ^használd, ^mondja, ^mutassa, ^nyissa, ^kasuta, ^ütle, ^izmanto, ^nosauc, ^uzrādi, ^naudok,
  ^pasakyk, ^parodyk, ^χρησιμοποι, ^δώστε, ^πείτε, ^δείξτε, ^ανοίξτε, ^përdor, استخدم, أعط, أخبر, اعرض, ^השתמש,
  ^מסור, ^הצג, ^אמור, ^תן_, ใช้, กด, แจ้ง, แสดง, บอก, ^dùng, ^sử dụng, ^đưa_, ^đọc_, ^gunakan, ^guna$, ^pakai$,
  ^tunjukkan, ^berikan, ^sebutkan, ^beritahu, ^tumia$, ^gamitin, 使用, 凭_, 憑_, 请凭, 請憑, 凭码, 出示, 告知,
  告诉, 告訴, 提供
`)

/** Verbs for typing that come after the number. */
const ENTERING_AFTER_WORDS = words(`
  eingeben, einzugeben, eintippen, eintragen, ^invoeren, ^invullen, ^intypen, in te voeren, ^girin, ^giriniz,
  ^yazın, ^tuşlayın, ^girerek, ^yazarak, daxil edin, енгізіңіз, ^kiriting, оруулна уу, შეიყვანეთ, ჩაწერეთ,
  մուտքագրեք, ^megadás, ^beírás, وارد کن, وارد نما, را وارد, درج کریں, درج کیجیے, दर्ज कर, डालें, डालिए, डालकर,
  टाइप कर, भरें, प्रविष्ट, टाका$, লিখুন, দিন$, টাইপ কর, প্রবেশ করান, உள்ளிட, నమోదు చేయండి, ఎంటర్ చేయండి, દાખલ કરો,
  ਦਰਜ ਕਰੋ, നൽകുക, ನಮೂದಿಸಿ, ඇතුළත් කර, ရိုက်ထည့်, を入力, と入力, 入力して, ご入力, を打ち込, を記入, 입력, 적어 주,
  넣어 주, 눌러 주
`)

/** Verbs for using or giving that come after the number. */
const USING_AFTER_WORDS = words(`
  verwenden, benutzen, nennen, vorzeigen, ^kullanın, ^kullanarak, ^söyleyin, ^gösterin, istifadə ed, استفاده کن,
  بگویید, بدهید, ارائه, استعمال کر, बताएं, बताएँ, बताइए, दिखाएं, दिखाएँ, का उपयोग, का इस्तेमाल, ব্যবহার কর, বলুন,
  வழங்க, தெரிவி, を使, をお使, を伝え, をお伝え, を提示, をご提示, をお見せ, を見せ, 사용, 제시, 알려, 보여,
  말씀
`)

/** Purposes of codes. */
const PURPOSE_WORDS = words(`
  {reset|login|log-in|sign-in|sign-up|activation|verification|confirmation|pairing}{_page|_screen|_form},
  {^to|^and|^then}{_confirm|_verify|_continue|_proceed|_finish|_complete|_activate|_approve|_unlock|_open|
  _receive|_collect|_pick|_access|_pair|_connect|_register|_reset|_change|_authori|_link|_join|_prove|_validate|
  _release|_choose|_set|_create|_restore|_recover|_enable|_get in|_start|_take}, ^confirm, ^verify, ^approve,
  ^authori, ^unlock, ^activate, ^sign, ^log in, ^accept, ^release, bestätig, fortzufahren, fortfahren, weiterzu,
  abzuschließen, abschließen, freizugeben, freigeben, freizuschalten, freischalten, aktivier, zurückzusetzen,
  zurücksetzen, verifizier, zu öffnen, abzuholen, koppeln, verbinden, registrier, confirmer, valider, continuer,
  poursuivre, vérifier, activer, terminer, ouvrir, récupérer, retirer, réinitialiser, déverrouiller, autoriser,
  finaliser, confirmar, verificar, continuar, validar, activar, ativar, completar, abrir, recoger, retirar,
  restablecer, redefinir, desbloquear, finalizar, concluir, aprobar, aprovar, autorizar, recuperar, conferma,
  verifica, continua, proseg, attiva, complet, aprire, ritir, reimposta, sblocca, approva, autorizz, bevestig,
  verifi, door te gaan, doorgaan, activeren, voltooi, openen, op te halen, ontgrendel, goed te keuren, bekräft,
  verifier, fortsätt, aktiver, slutför, öppna, hämta, godkän, återställ, bekræft, bekreft, fortsæt, fortsett,
  fullfør, fuldfør, åbne, åpne, hente, godken, godkjen, nulstil, tilbakestill, vahvista, jatka, aktivoi,
  avataksesi, noutaaksesi, hyväksy, palautta, staðfest, potwierdz, potwierdź, kontynu, dokończ, zakończ, aktyw,
  otworzyć, odebrać, odblok, zatwierdz, zresetow, potvrz, potvrď, potvrdi, pokračov, pokračuj, dokonč, aktiv,
  otevř, vyzved, odemkn, schvál, obnov, otvor, vyzdv, nastav, dovrš, završ, nadaljuj, preuzm, prevz, подтвер,
  продолж, заверш, актив, открыт, откро, получ, разблок, восстанов, сброс, одобр, підтвер, продовж, відкри,
  отрима, віднов, скин, потвър, продължи, потврд, настав, отвор, вземет, megerősít, folytat, befejez, aktivál,
  kinyit, átvét, visszaállít, jóváhagy, kinnita, jätka, apstiprin, turpin, patvirtin, tęsti, επιβεβαι, συνέχ,
  συνεχί, ολοκληρ, ενεργοποι, παραλά, επαναφορ, konfirm, vazhdo, onayla, doğrula, devam, tamamla, etkinleştir,
  teslim al, sıfırla, təsdiq, davam et, растау, баталгаажуул, დასადასტურებლად, հաստատ, تأكيد, لتأكيد, للتأكيد,
  التحقق, المتابعة, للمتابعة, تفعيل, لتفعيل, فتح, لفتح, استلام, لاستلام, إعادة تعيين, تأیید, تایید, ادامه, فعال,
  باز کردن, تحویل, تصدیق, جاری رکھن, לאשר, לאימות, אימות, לאישור, להמשיך, להמשך, להפעיל, להפעלת, לפתוח, לפתיחת,
  לאסוף, לאיפוס, सत्यापित, पुष्टि, जारी रख, सक्रिय, खोलने, प्राप्त, रीसेट, যাচাই, নিশ্চিত, চালিয়ে, சரிபார்க்க, உறுதி,
  ధృవీకరించ, ચકાસ, ยืนยัน, ดำเนินการต่อ, เปิด, รับพัสดุ, รีเซ็ต, xác nhận, xác minh, xác thực, tiếp tục, hoàn tất,
  kích hoạt, ^mở_, nhận hàng, đặt lại, konfirmasi, mengonfirmasi, verifikasi, memverifikasi, melanjutkan,
  menyelesaikan, mengaktifkan, membuka, mengambil, mengesahkan, meneruskan, kuthibitisha, kuendelea, 验证, 驗證,
  确认, 確認, 继续, 繼續, 完成, 激活, 啟用, 开启, 打开, 打開, 重置, 重設, 認証, 続行, 続け, 完了, 有効化, 開け,
  受け取, 再設定, 확인, 인증, 계속, 완료, 활성화, 열려, 열기, 여세, 여시, 받으, 재설정
`)

/** Words for parcels and rides: couriers, drivers and lockers, which need a code. */
export const HANDOVER_WORDS = words(`
  courier, driver, locker, ^rider, ^your ride, ^trip$, ^taxi, ^course$, ^fahrt$, ^viaje, ^corsa$, ^viagem,
  ^поездк, ^поїздк, ^przejazd, bote$, boten$, kurier, zusteller, fahrer, paketfach, schließfach, packstation,
  livreur, coursier, casier, consigne, repartidor, mensajero, taquilla, entregador, estafeta, armário, cacifo,
  corriere, armadietto, curier, bezorger, koerier, kluis, kuriren, kurir, budet$, budbringer, chaufför,
  paketskåp, pakkeboks, pakkeautomat, kuriiri, kuljettaj, lokero, paczkomat, skrytk, kierowc, kurýr, schránk,
  řidič, курьер, кур'єр, курʼєр, водител, постамат, ячейк, поштомат, futár, csomagautomat, kullerile, pakiautom,
  kurjer, pakomāt, paštomat, κούριερ, θυρίδα, διανομέ, kurye, dolap, سائق, مندوب, پیک, שליח, לוקר, कूरियर,
  डिलीवरी, ไรเดอร์, พนักงาน, ตู้, shipper, tủ_, ^tài xế, loker, 快递员, 骑手, 司机, 取件, 开柜, 配達員,
  ドライバー, ロッカー, 배달, 기사, 택배, 보관함
`)

/** Words that forbid something. The number in such a sentence is an example. */
const FORBIDDING_WORDS = words(`
  ^never$, ^don't$, ^don’t$, do not, ^avoid, ^cannot$, ^nicht$, ^niemals$, ^keine, ^jamais$, n'utilisez,
  n’utilisez, ^nunca$, ^não$, ^nao$, ^non$, ^mai$, ^niet$, ^nooit$, ^aldrig$, ^inte$, ^ikke$, ^aldri$, ^älä$,
  ^älkää$, ^nie$, ^nikdy$, ^никогда$, ^не$, ^ніколи$, ^никога$, ^soha$, ^ποτέ$, ^μην$, ^asla$, ^أبدا, ^لا_,
  ^هرگز$, ^אל$, ^לעולם$, ^đừng$, ^không$, ^jangan$, 不要, 请勿, 請勿, ห้าม, อย่า
`)

export const INSTRUCTION_WORDS = [
  ...ENTERING_WORDS,
  ...USING_WORDS,
  ...ENTERING_AFTER_WORDS,
  ...USING_AFTER_WORDS,
  ...PURPOSE_WORDS,
  ...HANDOVER_WORDS,
  ...FORBIDDING_WORDS,
]

const VERBS_BEFORE = new Vocabulary({
  entering: ENTERING_WORDS,
  using: USING_WORDS,
  forbidding: FORBIDDING_WORDS,
})
const VERBS_AFTER = new Vocabulary({
  entering: ENTERING_AFTER_WORDS,
  using: USING_AFTER_WORDS,
  forbidding: FORBIDDING_WORDS,
})
const PURPOSES = new Vocabulary({ purpose: [...SIGN_IN_WORDS, ...PURPOSE_WORDS, ...HANDOVER_WORDS] })
