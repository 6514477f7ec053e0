import type { Candidate } from './code-candidates.js'
import { listed } from './vocabulary.js'

const units = listed(String.raw`
    eur, euros?, usd, usdt, gbp, chf, inr, jpy, cny, rmb, brl, mxn, pln, czk, huf, sek, nok, dkk, ron,
    lei, bgn, лв, tl, rub, uah, грн, btc, eth, kr, kč, zł, ft, руб, ₽, ₺, ₴, ₪, ₫, đ, ฿, บาท, 元, 円,
    원, ر\.س, ریال, تومان, درهم, points?, punkte, points, puntos, pontos, credits?, coins?, gems?, xp,
    miles?, stars?, users?, people, items?, members?, subscribers?, customers?, followers?, views?,
    visits?, visitors?, steps?, lines?, words?, pages?, times?, years?, tests?, passed, failed, events?,
    errors?, rows?, records?, requests?, messages?, emails?, commits?, files?, min(?:ute)?s?, hours?,
    hrs?, days?, seconds?, sec, ms, stunden, tage, minuten, heures, jours, horas, días, dias, ore,
    giorni, uhr, px, kb, mb, gb, tb, km, kg, g, lbs?, m², m2, sq, accounts?, devices?, products?, articles?, kwh, wh, kcal, bytes?, pcs, stück, hz
  `)
const unitBehind = new RegExp(`^[ \\u00a0]?(?:${units.join('|')})(?![\\p{L}\\p{N}])`, 'u')
const currencyBefore =
  /(?:(?<!\p{L})(?:eur|usd|gbp|chf|inr|jpy|pln|czk|huf|sek|nok|dkk|ron|rm|rp|rs\.?|kr|zł|nt\$|r\$)|[$€£¥₹₽₩₺₪₴฿])[ \u00a0]?$/u

/** Whether it is an amount of money, time or things. `lower` is the lower-cased text around. */
export function isMeasure(lower: string, { start, end }: Candidate): boolean {
  return (
    unitBehind.test(lower.slice(end, end + 14)) ||
    currencyBefore.test(lower.slice(Math.max(0, start - 6), start))
  )
}

// Two capitals before a number: a state before its postcode, a standard, a register. But not what names codes.
const initials = /(?:^|[^\p{L}\p{N}])(\p{Lu}{2,5})[ \u00a0]$/u
// Whose it is: "account 4482913", "user gamer42".
const holders = new Set(
  listed(`
    account, acct, konto, kontos, compte, cuenta, conta, conto, rekening, konta, účtu, účet, hesap, hesabı, аккаунта,
    аккаунту, акаунта, счета, user, username, benutzer, benutzername, utilisateur, usuario, usuário, utente, gebruiker,
    användare, bruker, bruger, player, profile, profil, workspace, tenant
  `),
)
const wordBefore = /(\p{L}{4,13})[ \u00a0]$/u
const codeInitials = new Set(listed('OTP, PIN, TAN, TAC, CODE, KOD, KODE, COD, MFA, TOTP, MTAN, SMS, IS, BE'))

/** Whether capitals before it say what it numbers: "RFC 6238", "CA 94107", "ID 20481". */
export function isNumbered(text: string, { start }: Candidate): boolean {
  if (holders.has(wordBefore.exec(text.slice(Math.max(0, start - 14), start))?.[1]?.toLowerCase() ?? ''))
    return true
  const match = initials.exec(text.slice(Math.max(0, start - 8), start))
  if (match === null || codeInitials.has(match[1] ?? '')) return false
  // Where all is in capitals they say nothing.
  return /\p{Ll}/u.test(text.slice(Math.max(0, start - 60), start + 60))
}

export function isYear(value: string): boolean {
  return /^(?:19|20)\d\d$/.test(value)
}
