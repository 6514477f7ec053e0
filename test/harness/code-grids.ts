import { findCodes } from '#libs/mail/codes/codes.js'
import { likelyConfidence } from './labelled-mails.js'
import { seededRandom } from './seeded-random.js'

/** A generated mail, and the code that its reader would type; null if it has none. */
export interface GridMail {
  subject: string | null
  text: string
  code: string | null
}

/** Generated mails of one kind. At least `minShare` of them must give the right code. */
export interface Grid {
  name: string
  minShare: number
  mails: GridMail[]
}

const DIGITS = '0123456789'
const CAPITALS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
const SMALL = CAPITALS.toLowerCase()

/** Alphabets of codes. Where a code may have small letters only, it may also be a word. */
const ALPHABETS: [name: string, characters: string, length: number, minShare: number][] = [
  ['[0-9]{4}', DIGITS, 4, 0.98],
  ['[0-9]{6}', DIGITS, 6, 0.98],
  ['[A-Z]{4}', CAPITALS, 4, 0.98],
  ['[A-Z]{5}', CAPITALS, 5, 0.98],
  ['[A-Z]{6}', CAPITALS, 6, 0.98],
  ['[A-Z]{8}', CAPITALS, 8, 0.98],
  ['[2-9A-HJ-NP-Z]{4}', CAPITALS.replace(/[IO]/g, '') + '23456789', 4, 0.98],
  ['[A-Z0-9]{6}', CAPITALS + DIGITS, 6, 0.98],
  ['[A-Z0-9]{8}', CAPITALS + DIGITS, 8, 0.98],
  ['[A-Za-z]{6}', CAPITALS + SMALL, 6, 0.95],
  ['[0-9A-Za-z]{4}', CAPITALS + SMALL + DIGITS, 4, 0.98],
  ['[0-9A-Za-z]{5}', CAPITALS + SMALL + DIGITS, 5, 0.98],
  ['[0-9A-Za-z]{6}', CAPITALS + SMALL + DIGITS, 6, 0.98],
  ['[0-9A-Za-z]{8}', CAPITALS + SMALL + DIGITS, 8, 0.98],
  ['[0-9a-f]{6}', DIGITS + 'abcdef', 6, 0.95],
  ['[a-z0-9]{6}', SMALL + DIGITS, 6, 0.95],
  ['[a-z0-9]{8}', SMALL + DIGITS, 8, 0.95],
  ['[a-z]{6}', SMALL, 6, 0.95],
]

/** Sentences that name a code. `@` is the code. */
const NAMED: Record<string, string[]> = {
  English: [
    'Your verification code is @.',
    'Your verification code: @',
    'Verification code is @',
    'Your one-time password is @. It expires in 10 minutes.',
    '@ is your verification code.',
    'Use this security code: @',
    'Here is your one-time login code:\n\n@\n\nThis code is valid for 5 minutes.',
    'Enter this verification code to continue:\n\n    @\n\nThe Example team',
    'Your access code\n\n@\n\nDo not share it.',
    'Confirmation code @',
    'Use the verification code @ to log in.',
    'Your temporary password is: @',
  ],
  German: [
    'Ihr Bestätigungscode lautet @.',
    'Ihr Bestätigungscode ist @',
    'Dein Sicherheitscode: @',
    'Ihr Einmalpasswort lautet: @. Es ist 10 Minuten gültig.',
    '@ ist Ihr Bestätigungscode.',
    'Hier ist Ihr Anmeldecode:\n\n@\n\nDer Code ist 5 Minuten gültig.',
    'Geben Sie diesen Bestätigungscode ein:\n\n@\n\nIhr Example-Team',
  ],
  French: [
    'Votre code de vérification est @.',
    'Votre code de vérification est : @',
    'Votre code de sécurité : @',
    '@ est votre code de vérification.',
    'Votre code à usage unique est le @',
    'Voici votre code à usage unique :\n\n@\n\nIl est valable 5 minutes.',
    'Saisissez ce code de vérification :\n\n@\n\nL’équipe Example',
  ],
  Spanish: [
    'Tu código de verificación es @.',
    'Su código de seguridad: @',
    '@ es tu código de verificación.',
    'Este es tu código de acceso:\n\n@\n\nCaduca en 5 minutos.',
  ],
  Italian: [
    'Il tuo codice di verifica è @.',
    'Codice di sicurezza: @',
    '@ è il tuo codice di verifica.',
    'Ecco il tuo codice di accesso:\n\n@\n\nScade tra 5 minuti.',
  ],
  Portuguese: [
    'O seu código de verificação é @.',
    'Código de segurança: @',
    'Aqui está o seu código de acesso:\n\n@\n\nExpira em 5 minutos.',
  ],
  Dutch: [
    'Je verificatiecode is @.',
    'Uw beveiligingscode: @',
    '@ is je verificatiecode.',
    'Hier is je inlogcode:\n\n@\n\nDeze code is 5 minuten geldig.',
  ],
  Swedish: ['Din verifieringskod är @.', 'Här är din engångskod:\n\n@\n\nKoden gäller i 5 minuter.'],
  Polish: [
    'Twój kod weryfikacyjny to @.',
    'Kod weryfikacyjny: @',
    'Oto Twój kod logowania:\n\n@\n\nDo widzenia',
  ],
  Russian: ['Ваш код подтверждения: @', 'Код подтверждения — @', 'Ваш одноразовый код:\n\n@\n\nДо встречи'],
  Korean: ['인증번호: @', '인증 코드는 @입니다.'],
}

/** Things for which codes are sent, and the sentences around them. `#` is the thing, `@` the code. */
const PURPOSES: [sentences: string[], things: string][] = [
  [
    ['OTP for your # is @. Do not share it.', 'Your code for the # is @.', 'Verification code for your #: @'],
    'order, payment, booking, ticket, invoice, parcel, transaction, reservation, shipment, purchase, delivery, refund',
  ],
  [
    ['Der Code für Ihre # lautet @.', 'Ihr Bestätigungscode für die #: @', 'Die TAN für Ihre # ist @.'],
    'Bestellung, Zahlung, Buchung, Rechnung, Sendung, Reservierung, Überweisung, Lieferung',
  ],
  [
    ['Le code pour votre # est @.', 'Votre code de confirmation pour la # : @', 'Le code de votre # est : @'],
    'commande, facture, réservation, livraison, transaction, carte',
  ],
  [
    ['El código para su # es @.', 'Tu código de confirmación para el #: @', 'El código de tu # es: @'],
    'pedido, pago, factura, reserva, envío, billete, compra',
  ],
  [
    ['De code voor uw # is @.', 'Uw bevestigingscode voor de #: @', 'De code van je # is @'],
    'bestelling, betaling, boeking, factuur, zending, reservering, levering',
  ],
  [
    ['Kod do # to @', 'Kod do #: @', 'Twój kod do # to @.', '@ to kod do #.'],
    'zamówienia, płatności, przesyłki, rezerwacji, faktury, paczki',
  ],
  [['Kód k # je @', 'Kód pro #: @'], 'objednávce, platbě, zásilce, rezervaci'],
  [['Код для # — @', 'Код для #: @'], 'заказа, оплаты, бронирования, доставки'],
]

/** Short sentences before and after a code. */
const BEFORE = [
  'Your verification code is @.',
  'Your code: @',
  'Ihr Bestätigungscode lautet @.',
  'Votre code de vérification est @.',
  'Your one-time login code:\n\n@\n\nBye',
]
const AFTER = [
  '@ is your verification code',
  '@ ist Ihr Bestätigungscode',
  '@ est votre code de vérification',
  '@ es tu código de verificación',
  '@ is your Example code',
]
const DECORATIONS = [
  '(@)',
  '[@]',
  '#@',
  '_@_',
  '*@*',
  '"@"',
  '«@»',
  '“@”',
  '`@`',
  '【@】',
  '<@>',
  '{@}',
  '- @ -',
  '→ @',
  '__@__',
  '~@~',
  "'@'",
]
const SEPARATORS: Record<string, string> = {
  'narrow no-break space': '\u202f',
  'no-break space': '\u00a0',
  'thin space': '\u2009',
  'figure space': '\u2007',
  'ideographic space': '\u3000',
  'en space': '\u2002',
  'double space': '  ',
  tab: '\t',
  'zero-width space': '\u200b',
  'zero-width joiner': '\u200d',
  'word joiner': '\u2060',
  'byte order mark': '\ufeff',
  'soft hyphen': '\u00ad',
  'em dash': '—',
  'en dash': '–',
  'figure dash': '‒',
  'minus sign': '−',
  'horizontal bar': '―',
  'three spaces': '   ',
  'katakana middle dot': '・',
  'middle dot': '·',
  'spaced middle dot': ' · ',
  bullet: '•',
  'full stop': '.',
  'spaced hyphen': ' - ',
}

/** Markers of forwarded mail, with the names of its header fields: from, subject, date, to. */
const FORWARDS: Record<string, [marker: string, fields: string, prefix: string, sentence: string]> = {
  English: ['Begin forwarded message:', 'From, Subject, Date, To', 'Fwd', 'Your verification code is @.'],
  German: [
    'Anfang der weitergeleiteten Nachricht:',
    'Von, Betreff, Datum, An',
    'WG',
    'Ihr Bestätigungscode lautet @.',
  ],
  French: ['Début du message réexpédié :', 'De, Objet, Date, À', 'TR', 'Votre code de vérification est @.'],
  Spanish: [
    'Inicio del mensaje reenviado:',
    'De, Asunto, Fecha, Para',
    'RV',
    'Tu código de verificación es @.',
  ],
  Italian: ['Inizio messaggio inoltrato:', 'Da, Oggetto, Data, A', 'I', 'Il tuo codice di verifica è @.'],
  Portuguese: [
    'Início da mensagem reencaminhada:',
    'De, Assunto, Data, Para',
    'ENC',
    'O seu código de verificação é @.',
  ],
  Dutch: ['Begin doorgestuurd bericht:', 'Van, Onderwerp, Datum, Aan', 'Doorst', 'Je verificatiecode is @.'],
  Swedish: ['Vidarebefordrat brev:', 'Från, Ämne, Datum, Till', 'VB', 'Din verifieringskod är @.'],
  Danish: ['Start på videresendt besked:', 'Fra, Emne, Dato, Til', 'VS', 'Din bekræftelseskode er @.'],
  Polish: ['Początek przekazywanej wiadomości:', 'Od, Temat, Data, Do', 'PD', 'Twój kod weryfikacyjny to @.'],
  Russian: ['Начало переадресованного сообщения:', 'От, Тема, Дата, Кому', 'Fwd', 'Ваш код подтверждения: @'],
  Turkish: ['İletilen ileti başlangıcı:', 'Kimden, Konu, Tarih, Kime', 'İLT', 'Doğrulama kodunuz: @'],
  Japanese: ['転送されたメッセージ：', '差出人, 件名, 日付, 宛先', 'Fwd', '認証コード：@'],
  Chinese: ['开始转发的邮件：', '发件人, 主题, 日期, 收件人', '转发', '您的验证码是@，5分钟内有效。'],
}

/** Sentences with other numbers beside a code. `@` is the code, `#` the other number. */
const OTHER_NUMBERS = [
  'Your code for order # is @.',
  'Your verification code for order # is @',
  'Your code for transaction # is @.',
  'Your code for order no. # is @.',
  'Ihr Code für Bestellung Nr. # lautet @.',
  'Your code for request ID # is @.',
  'Dein Code für Anfrage # ist @.',
  'Your OTP for loan # is @',
  'Request #: your verification code is @.',
  'Booking number: #\nYour verification code: @',
  '@ is your verification code for booking number #.',
  'Ihr Code für die Bestellung # lautet @.',
  'Votre code pour la commande # est @.',
  'Tu código para el pedido # es @.',
  'De code voor bestelling # is @.',
  'OTP @ for txn #',
  'Your OTP is @. Txn #.',
  'Your OTP is @ (txn id #)',
  '@ is your OTP for txn # of INR 4,500.00',
  'Mã OTP của bạn là @, mã giao dịch #.',
  'Mã giao dịch #. Mã OTP: @',
  'EXMPL: @ is your verification code. Ref #',
  'Your verification code is @. Request ID: #',
  'Your verification code is @. Transaction number #.',
  'Ihre TAN lautet @, Vorgangsnummer #.',
  'Votre code de vérification est @. Référence : #',
  'Order #\nYour verification code is @.',
  'Kod do zamówienia # to @',
  'Kód k objednávce # je @',
  'Код для заказа # — @',
  'Mã OTP: @. Mã đơn hàng: #',
  'Mã xác thực cho giao dịch # là @',
  'Your verification code is @.\n\n#',
  'Your code is @\n#',
]

/** Mails that only talk of codes. `@` is a word or a button. */
const WITHOUT_CODE: [sentences: string[], words: string][] = [
  [
    [
      'Your code is @.',
      'Your verification code is @.',
      'Your verification code is @ for 10 minutes.',
      'Verification code: @',
      'the code is @ and works once',
    ],
    'invalid, valid, below, expired, ready, attached, here, incorrect, wrong, secret, private, required, missing, unique, available, personal, blocked, correct, active, used, included, enclosed, temporary, confidential, optional, not, only, sent, being, case, enough, unknown, early, typed, exactly, true',
  ],
  [
    [
      'Your verification code\n\n@\n\nThe Example team',
      'Get your login code here:\n\n@\n',
      'Sign in with a one-time code:\n\n@\n\nor reply to this mail.',
    ],
    'IKEA, NASA, DOWNLOAD, ACCEPT, VERIFY, CONFIRM, COPY, LOGIN, SIGN IN, OPEN, CONTINUE, CLICK HERE, VIEW, SHOW CODE, VERIFY EMAIL, ACTIVATE, START, HELP, SUPPORT, UNSUBSCRIBE, Verify, Confirm, Continue, verify, confirm, continue, example, Example, EXAMPLE, GitHub, PayPal, YouTube, SHOP, TESLA, FNAC',
  ],
  [
    ['Ihr Bestätigungscode ist @.', 'Ihr Code lautet wie folgt: @'],
    'ungültig, gültig, abgelaufen, angehängt, unten, falsch, richtig, geheim, nötig, erforderlich, bereit, privat, echt, leer',
  ],
  [
    ['Votre code de vérification est @.'],
    'invalide, valable, valide, expiré, secret, incorrect, requis, joint, prêt, unique, personnel, confidentiel, faux, nouveau, vrai',
  ],
  [
    ['Tu código de verificación es @.'],
    'válido, inválido, secreto, correcto, incorrecto, personal, único, necesario, nuevo',
  ],
  [['Je verificatiecode is @.'], 'verlopen, ongeldig, klaar, bijgevoegd, geldig, nieuw'],
]

const NUMBERS = ['4829156', '12345678', '153399', '8837712', '20481955', '998877']

/** All grids, the same on each call. */
export function codeGrids(): Grid[] {
  const random = seededRandom(20_261_127)
  const pick = (characters: string, length: number) =>
    Array.from({ length }, () => characters.charAt(Math.floor(random() * characters.length))).join('')
  const digits = () => pick('123456789', 1) + pick(DIGITS, 5)
  const mail = (
    template: string,
    code: string | null,
    written = code ?? '',
    subject: string | null = 'Hello',
  ): GridMail => ({
    subject,
    text: template.replace('@', () => written),
    code,
  })
  const list = (names: string) => names.split(', ')
  const sentences = Object.values(NAMED).flat()
  const grids: Grid[] = ALPHABETS.map(([name, characters, length, minShare]) => ({
    name: `alphabet ${name}`,
    minShare,
    mails: sentences.flatMap((sentence) =>
      Array.from({ length: 20 }, () => mail(sentence, pick(characters, length))),
    ),
  }))
  const add = (name: string, mails: GridMail[], minShare = 0.95) => grids.push({ name, minShare, mails })
  add(
    'code for an order, a payment …',
    PURPOSES.flatMap(([templates, things]) =>
      templates.flatMap((template) =>
        list(things).map((thing) => mail(template.replace('#', thing), digits())),
      ),
    ),
  )
  add(
    'reference before the code',
    BEFORE.concat(AFTER, [
      'OTP: @',
      'Use @ to sign in.',
      'Your OTP is @. Enter it on the page that shows the reference.',
    ]).flatMap((template) =>
      ['-', '–', ' ', '‑'].flatMap((separator) =>
        [3, 4].flatMap((length) =>
          [CAPITALS, SMALL].map((letters) => {
            const code = digits()
            return mail(template, code, pick(letters, length) + separator + code)
          }),
        ),
      ),
    ),
  )
  const decorated = (template: string, isSubject: boolean) =>
    DECORATIONS.map((decoration) => {
      const code = digits()
      const written = decoration.replace('@', code)
      return isSubject
        ? { ...mail('Welcome back.', code), subject: template.replace('@', written) }
        : mail(template, code, written)
    })
  add(
    'brackets and marks around the code',
    BEFORE.concat(AFTER).flatMap((template) => [...decorated(template, false), ...decorated(template, true)]),
  )
  add(
    'groups of digits',
    BEFORE.concat(AFTER).flatMap((template) =>
      Object.values(SEPARATORS).flatMap((separator) =>
        [3, 2].map((length) => {
          const code = digits()
          return mail(template, code, (code.match(new RegExp(`.{${length}}`, 'g')) ?? []).join(separator))
        }),
      ),
    ),
  )
  add(
    'forwarded mail',
    Object.values(FORWARDS).flatMap(([marker, fields, prefix, sentence]) => {
      const [from = '', subject = '', date = '', to = ''] = list(fields)
      const headers = [
        `${from}: Shop <no-reply@shop.example>`,
        `${subject}: Hello`,
        `${date}: 2026-11-27 10:00`,
        `${to}: kim@mail.example`,
      ]
      const quoted = (code: string) =>
        [...headers, '', sentence.replace('@', code)].map((line) => `> ${line}`)
      return [`${prefix}: Hello`, 'Fwd: Hello', 'Hello'].flatMap((line) => {
        const codes = [digits(), digits(), digits(), digits()]
        const [a = '', b = '', c = '', d = ''] = codes
        return [
          { subject: line, text: ['', marker, '', ...quoted(a)].join('\n'), code: a },
          { subject: line, text: [marker, ...quoted(b)].join('\n'), code: b },
          { subject: line, text: quoted(c).join('\n'), code: c },
          {
            subject: line,
            text: ['Kim', '', marker, '', ...headers, '', sentence.replace('@', d)].join('\n'),
            code: d,
          },
        ]
      })
    }),
  )
  add(
    'other numbers beside the code',
    OTHER_NUMBERS.flatMap((template) =>
      NUMBERS.flatMap((number) =>
        [4, 6].map((length) => mail(template.replace('#', number), digits().slice(0, length))),
      ),
    ),
  )
  add(
    'words where a code could be',
    WITHOUT_CODE.flatMap(([templates, words]) =>
      templates.flatMap((template) => list(words).map((word) => mail(template, null, word))),
    ),
    1,
  )
  return grids
}

/** The mails of a grid whose first likely code is wrong, or in which other codes are listed. */
export function wrongMails({ mails }: Grid): GridMail[] {
  return mails.filter(({ subject, text, code }) => {
    const [best, ...others] = findCodes(subject, text, null, 20)
    const isLikely = best !== undefined && best.confidence >= likelyConfidence
    return (isLikely ? best.value : null) !== code || others.length > 0
  })
}
