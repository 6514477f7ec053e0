/**
 * The words by which mails announce one-time codes, and those by which they announce numbers of other kinds.
 * All are matched against lower-cased text. Alternatives are literals with at most an optional space or
 * hyphen, so that matching is linear.
 */

// Words that are about codes and nothing else.
const strongWords = [
  'verif(?:y|ication|ikation|izierung|icação|icación|icacion|icare|ica\\b|icatie|iering)',
  'vérification',
  'one[- ]?time',
  '\\botps?\\b',
  'pass[- ]?code',
  '\\b(?:2fa|mfa|pin|tan|2sv)\\b',
  'two[- ](?:factor|step)',
  '(?:security|login|log-?in|sign[- ]?in|sign[- ]?up|access|authentication|authorization|authorisation|auth|confirmation|activation|temporary|device|pairing|recovery) ?(?:code|pin)',
  'einmal',
  '(?:bestätigungs|sicherheits|anmelde|zugangs|zugriffs|aktivierungs|freischalt|prüf)-?(?:code|kode|nummer)',
  'code (?:de sécurité|de connexion|de confirmation|à usage unique|d.accès|d.activation|d.authentification)',
  'usage unique',
  'código (?:de (?:seguridad|acceso|confirmación|activación|un solo uso|inicio|segurança|acesso|confirmação))',
  'codice (?:di (?:sicurezza|accesso|conferma|verifica)|monouso|otp)',
  'engångs',
  'bekräftelsekod',
  'engangs',
  'bekræftelseskode',
  'bekreftelseskode',
  'vahvistuskoodi',
  'kertakäyttö',
  'weryfikacyjn',
  'jednorazow',
  'ověřovací',
  'overovac',
  'jednorázov',
  'ellenőrző',
  'doğrulama',
  'onay kodu',
  'tek kullanımlık',
  'подтвержд',
  'проверочн',
  'одноразов',
  'підтвердж',
  'επαλήθευσ',
  'xác (?:minh|thực|nhận)',
  'mã otp',
  'kode (?:otp|verifikasi)',
  'รหัส(?:ยืนยัน|otp| otp)',
  'رمز (?:التحقق|التأكيد)',
  'קוד אימות',
  'सत्यापन',
  '验证码',
  '驗證碼',
  '校验码',
  '動態碼',
  '动态码',
  '動態密碼',
  '动态密码',
  '确认码',
  '確認碼',
  '认证码',
  '認證碼',
  '認証(?:コード|番号)',
  '確認(?:コード|番号)',
  '検証コード',
  'ワンタイム',
  '暗証番号',
  'セキュリティ ?コード',
  '인증 ?(?:번호|코드)',
  '확인 ?코드',
  '보안 ?코드',
]

const weakWords = [
  'codes?(?![a-z])',
  'código',
  'codigo',
  'codice',
  'koodi',
  '\\bkod(?:e|en|u|unuz|ot|om|ja)?(?![a-z])',
  'kód',
  '\\bкод',
  'κωδικ',
  'mã ',
  'รหัส',
  'رمز',
  'كود',
  'קוד',
  'कोड',
  'コード',
  '코드',
  'password',
  'passwort',
  'kennwort',
  'mot de passe',
  'contraseña',
  'пароль',
  '密码',
  '密碼',
]

const otherWords = [
  '(?:promo|promotion|promotional|discount|coupon|voucher|gift|referral|invite|rabatt|gutschein|aktions|tracking|error|status|response|product|zip|postal|post|area|country|dialling|source|bar|qr|uni|item|sort|swift|bank|style|dress|offer|campaign|reward|store)[- ]?(?:card )?codes?',
  'error',
  'code (?:promo|postal|de réduction|de suivi|erreur|article|client)',
  'código (?:postal|promocional|de descuento|de desconto|de rastreo|de seguimiento)',
  'codice (?:sconto|promozionale|postale|fiscale|cliente)',
  'order',
  'invoice',
  'receipt',
  '\\bticket',
  '\\bcase\\b',
  'reference',
  '\\bref\\b',
  'booking',
  'reservation',
  'tracking',
  'shipment',
  'parcel',
  'account (?:number|no|id|ending)',
  'ending (?:in|with)',
  'customer',
  'member(?:ship)?',
  'transaction',
  'payment',
  'total',
  'amount',
  'balance',
  'price',
  '\\bzip\\b',
  '\\bphone',
  '\\btel\\b',
  'telefon',
  'téléphone',
  'teléfono',
  '\\bcall\\b',
  '\\bfax\\b',
  '\\bmobile',
  '\\bflight',
  '\\bsku\\b',
  'serial',
  'license',
  'licence',
  'version',
  'build',
  'copyright',
  '©',
  'p\\.? ?o\\.? box',
  'suite',
  '\\bplz\\b',
  '\\bcap\\b',
  'bestell',
  'rechnung',
  'sendungs',
  'vorgangs',
  'kunden',
  'auftrag',
  'commande',
  'facture',
  'colis',
  'pedido',
  'factura',
  'fatura',
  'ordine',
  'fattura',
  'beställning',
  'zamówien',
  'заказ',
  'счет',
  'счёт',
  'индекс',
  'sipariş',
  '订单',
  '訂單',
  '邮编',
  '郵遞區號',
  '优惠码',
  '优惠券',
  '電話',
  '电话',
  '注文',
  '郵便',
  'クーポン',
  '追跡',
  '주문',
  '우편',
  '쿠폰',
  '전화',
]

/** What mails with codes are about; these words say nothing of a number beside them. */
const topicWords = [
  'confirm',
  'sign(?:ing)?[- ]?(?:in|up)',
  'log(?:ging)?[- ]?in',
  'authenticat',
  'bestätig',
  'anmeld',
  'connexion',
  'iniciar sesión',
  'вход',
  '登录',
  '登錄',
  'ログイン',
  '로그인',
]

const strong = new RegExp(strongWords.join('|'), 'g')
const weak = new RegExp(weakWords.join('|'), 'g')
const other = new RegExp(otherWords.join('|'), 'g')

const topic = new RegExp([...strongWords, ...weakWords, ...topicWords].join('|'))

export interface Mention {
  kind: 'strong' | 'weak' | 'other'
  start: number
  end: number
}

/** The last mention in a stretch of lower-cased text that a number behind it would be understood by. */
export function lastMention(text: string): Mention | null {
  const competing = last(text, other)
  const plain = last(text, weak)
  const certain = last(text, strong)
  let mention = certain === null ? null : toMention('strong', certain)
  if (plain !== null && (mention === null || plain.end > mention.end)) {
    // "verification code" is one mention, as strong as its strongest word.
    const isSamePhrase = mention !== null && plain.start - mention.end <= 12
    mention = toMention(isSamePhrase ? 'strong' : 'weak', plain)
  }
  // "promo code" ends where "code" does: the narrower word wins.
  if (competing !== null && (mention === null || competing.end >= mention.end))
    return toMention('other', competing)
  return mention
}

/** The first mention of a code; what else is mentioned doesn't matter. */
export function firstCodeMention(text: string): Mention | null {
  const certain = first(text, strong)
  const plain = first(text, weak)
  if (certain === null) return plain === null ? null : toMention('weak', plain)
  return toMention('strong', certain)
}

/** Whether a lower-cased text is about signing in, confirming or codes at all. */
export function isAboutCodes(text: string): boolean {
  return topic.test(text)
}

interface Span {
  start: number
  end: number
}

function toMention(kind: Mention['kind'], { start, end }: Span): Mention {
  return { kind, start, end }
}

function first(text: string, words: RegExp): Span | null {
  words.lastIndex = 0
  const match = words.exec(text)
  return match === null ? null : { start: match.index, end: words.lastIndex }
}

function last(text: string, words: RegExp): Span | null {
  let span: Span | null = null
  words.lastIndex = 0
  for (let match = words.exec(text); match !== null; match = words.exec(text)) {
    span = { start: match.index, end: words.lastIndex }
  }
  return span
}
