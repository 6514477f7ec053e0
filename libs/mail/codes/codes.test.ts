import fc from 'fast-check'
import { readHtml } from '../links/visible-text.js'
import { findCodes } from './codes.js'

interface Sent {
  subject?: string
  text?: string
  html?: string
}

const codesIn = ({ subject, text, html }: Sent) =>
  findCodes(subject ?? null, text ?? null, html === undefined ? null : readHtml(html).text, 20)

const mailsWithCode: { send: Sent; expect: string }[] = [
  { send: { text: 'Your verification code is 493201.' }, expect: '493201' },
  { send: { text: 'Your verification code is 493-201.' }, expect: '493201' },
  { send: { text: '493 201 is your Example code' }, expect: '493201' },
  { send: { subject: 'Your code is 4932' }, expect: '4932' },
  { send: { subject: '123456 is your Facebook confirmation code', text: 'Hi Ann,' }, expect: '123456' },
  { send: { text: 'G-123456 is your Google verification code.' }, expect: '123456' },
  { send: { text: 'FB-12345 is your confirmation code' }, expect: '12345' },
  {
    send: { text: 'Enter this code to sign in:\n\n  8 3 1 4 4 2\n\nIt expires in 10 minutes.' },
    expect: '831442',
  },
  { send: { text: 'Login PIN: 0481' }, expect: '0481' },
  { send: { text: 'Use OTP 77120934 to approve the payment of USD 1500.00' }, expect: '77120934' },
  { send: { text: 'Your access code:\nX7K9QP\n' }, expect: 'X7K9QP' },
  { send: { text: 'Your one-time code is x7k9qp' }, expect: 'x7k9qp' },
  { send: { text: 'To connect your TV enter the code ABCD-1234.' }, expect: 'ABCD1234' },
  { send: { text: 'Enter the device code\n\nWDJB-MJHT\n' }, expect: 'WDJBMJHT' },
  { send: { subject: 'Slack confirmation code: ABC-123' }, expect: 'ABC123' },
  { send: { text: 'Steam Guard code you need to login:\n\nR7KQ4\n' }, expect: 'R7KQ4' },
  { send: { text: 'Ihr Bestätigungscode lautet 582913.' }, expect: '582913' },
  { send: { text: 'Dein Einmalpasswort: 20483911' }, expect: '20483911' },
  { send: { text: 'Votre code de vérification est : 771 204' }, expect: '771204' },
  { send: { text: 'Tu código de verificación es 90871' }, expect: '90871' },
  { send: { text: 'Il tuo codice di verifica è 550123' }, expect: '550123' },
  { send: { text: 'O seu código de verificação é 662190' }, expect: '662190' },
  { send: { text: 'Je verificatiecode is 118822' }, expect: '118822' },
  { send: { text: 'Din verifieringskod är 774411' }, expect: '774411' },
  { send: { text: 'Twój kod weryfikacyjny: 336699' }, expect: '336699' },
  { send: { text: 'Doğrulama kodunuz: 441122' }, expect: '441122' },
  { send: { text: 'Ваш код подтверждения: 903412' }, expect: '903412' },
  { send: { text: '您的验证码是123456，5分钟内有效。' }, expect: '123456' },
  { send: { text: '認証コード：１２３４５６' }, expect: '123456' },
  { send: { text: '인증번호 [482915]를 입력해 주세요.' }, expect: '482915' },
  { send: { text: 'رمز التحقق الخاص بك هو ٤٨٢٩١٥' }, expect: '482915' },
  { send: { text: 'Mã xác minh của bạn là 482915' }, expect: '482915' },
  {
    send: {
      html: '<p>Your code</p><table><tr><td>4</td><td>9</td><td>3</td><td>2</td><td>0</td><td>1</td></tr></table>',
    },
    expect: '493201',
  },
  {
    send: {
      html: '<style>.c{color:#102030}</style><h1>Verify your email</h1><div style="font-size:32px">493201</div>',
    },
    expect: '493201',
  },
  { send: { html: '<p>Your code: <b>4</b><b>9</b><b>3</b><b>2</b><b>0</b><b>1</b></p>' }, expect: '493201' },
  { send: { html: '<h2>719 305</h2><p>Enter this code on the sign-in page.</p>' }, expect: '719305' },
  { send: { text: 'Your verification code for order 998877 is 493201.' }, expect: '493201' },
  { send: { text: 'Order 12345 was placed. Your verification code is 493201' }, expect: '493201' },
  {
    send: { text: 'Your code is **493201**\n\n© 2024 Example Inc, San Francisco, CA 94107' },
    expect: '493201',
  },
  { send: { text: 'Verification code: 2024' }, expect: '2024' },
  {
    send: { subject: 'Confirm your email', text: 'Hello,\n\n  604418\n\nThe Example team' },
    expect: '604418',
  },
  { send: { text: 'security code = "550912"; do not share it with anyone' }, expect: '550912' },
  { send: { text: 'Example: 604418 is your code' }, expect: '604418' },
  { send: { text: 'Enter 604418 to log in' }, expect: '604418' },
  { send: { text: '请输入604418完成登录' }, expect: '604418' },
  { send: { text: 'Type 604418 on the page you left open.' }, expect: '604418' },
  { send: { text: 'Here is your code. Use 604418 to confirm your order.' }, expect: '604418' },
  { send: { text: 'Your parcel is here. Tell the courier 6044 to receive it.' }, expect: '6044' },
  { send: { text: 'Hello,\n604418\nPaste this number into the window.' }, expect: '604418' },
  { send: { text: 'Yeni cihaz için 604418 kodunu girin.' }, expect: '604418' },
  { send: { text: 'Pairing code: X4-99-ZQ' }, expect: 'X499ZQ' },
  { send: { text: 'Enter the code to confirm your payment:\n\n604418\n' }, expect: '604418' },
  { send: { text: 'Code for your order:\n604418\nOrder number:\n998877' }, expect: '604418' },
  {
    send: { text: 'Here is the one-time verification code that you asked us for, Jonah\nPratt: 604418' },
    expect: '604418',
  },
  { send: { text: 'Your login code.\nType 604418 within ten minutes.' }, expect: '604418' },
  { send: { text: 'YOUR ACCESS CODE IS 604418. DO NOT SHARE IT.' }, expect: '604418' },
  { send: { text: 'In order to log in enter the code 604418' }, expect: '604418' },
  { send: { text: 'Kod autoryzacyjny do przelewu na rachunek 61 1090 1014 0000: 604418' }, expect: '604418' },
  {
    send: { subject: 'Fwd: your code', text: '---------- Forwarded message\n\nYour code is 604418' },
    expect: '604418',
  },
  { send: { text: 'Save 20% with SPRING. Your verification code is 604418' }, expect: '604418' },
  { send: { text: 'Your code is 604418. If it has expired, ask for another.' }, expect: '604418' },
  { send: { text: '您的验证码是604418,5分钟内有效' }, expect: '604418' },
  {
    send: { text: 'Die TAN für 350,00 EUR an DE89 3704 0044 0532 0130 00 lautet 604418.' },
    expect: '604418',
  },
  { send: { text: 'Hasło z dnia 21-11-2026: 604418' }, expect: '604418' },
  { send: { text: 'Is é 604418 do chód fíoraithe.' }, expect: '604418' },
  { send: { text: 'আপনার যাচাইকরণ কোড ৬০৪৪১৮' }, expect: '604418' },
  { send: { text: 'OTP=604418 [Ref:ABCD]' }, expect: '604418' },
  { send: { text: 'Your passcode:\n\n6 0 4 – 4 1 8\n' }, expect: '604418' },
  { send: { text: 'To pay $84.10 enter the code 604 418 at checkout.' }, expect: '604418' },
  { send: { text: 'Enter 5H8-J2K on the reset page.' }, expect: '5H8J2K' },
  { send: { text: 'Join the team with this code:\n\nAX-771-QP\n' }, expect: 'AX771QP' },
  { send: { text: 'Recovery code:\nh3k9-2mzp\n' }, expect: 'h3k92mzp' },
  { send: { text: 'Your OTP is KPTX-1234.' }, expect: 'KPTX1234' },
  { send: { text: 'Your OTP is kptx-482913.' }, expect: '482913' },
  { send: { text: 'Your verification code is dfwb.' }, expect: 'dfwb' },
  { send: { text: 'Use verification code PaeDC to sign in to Acme.' }, expect: 'PaeDC' },
  { send: { text: 'Bitte geben Sie den Bestätigungscode fncRn in der App ein.' }, expect: 'fncRn' },
  { send: { text: 'Your code is 5KZ8 6F2A.' }, expect: '5KZ86F2A' },
  { send: { text: 'Here is your code:\n\nKPT 482913' }, expect: '482913' },
  { send: { text: 'Your verification code is #5KZ86F.' }, expect: '5KZ86F' },
  { send: { text: '(397494) — ваш код подтверждения.' }, expect: '397494' },
  { send: { text: 'Your verification code is 87 03.' }, expect: '8703' },
  { send: { text: 'Your OTP is CSUM 990760.' }, expect: '990760' },
  {
    send: { text: 'Your OTP is KPT-482913. Enter it on the page that shows KPT.' },
    expect: '482913',
  },
  {
    send: { text: 'Here is your one-time login code:\n\nKWQM\n\nIt is valid for 5 minutes.' },
    expect: 'KWQM',
  },
  { send: { text: 'OTP for your order is 739201. Do not share it with anybody.' }, expect: '739201' },
  { send: { text: 'Your code for order 12345678 is 4930' }, expect: '4930' },
  { send: { text: 'Votre code de vérification est 493\u202f201.' }, expect: '493201' },
  { send: { text: 'Your code: 493\u00ad201' }, expect: '493201' },
  { send: { subject: '[493201] is your verification code', text: 'Welcome back.' }, expect: '493201' },
  {
    send: {
      subject: 'Fwd: Ihr Code',
      text: '\nAnfang der weitergeleiteten Nachricht:\n\n> Von: Shop <no-reply@shop.example>\n>\n> Ihr Bestätigungscode lautet 493201.',
    },
    expect: '493201',
  },
  { send: { text: '您的验证码是604418，请访问https://x.example/v?code=771204完成验证' }, expect: '604418' },
]

describe('a one-time code is found as the most likely one', () => {
  test.each(mailsWithCode)('$expect in $send', ({ send, expect: value }) => {
    const [best] = codesIn(send)
    expect(best?.value).toBe(value)
    expect(best?.confidence).toBeGreaterThanOrEqual(0.5)
  })
})

const mailsWithoutCode: Sent[] = [
  { text: 'Copyright © 2024 Example Inc. All rights reserved.' },
  { text: 'Your order 4829156 has shipped.' },
  { subject: 'Invoice 204815', text: 'Invoice number: 204815\nAmount due: $1,250.00' },
  { text: 'Total: $4932.01\nPaid: EUR 493201' },
  { text: 'Call us on +1 555 123 4567 or 0800 123 456.' },
  { text: 'Example Inc, 1 Main Street, San Francisco, CA 94107' },
  { html: '<body bgcolor="#123456" style="color:#654321"><p style="color: #493201">Hello</p></body>' },
  { text: 'The palette is #493201 and #112233.' },
  { text: 'Meeting on 2024-11-21 at 12:30, see 21.11.2024.' },
  { text: 'Your tracking number is 1Z999AA10123456784.' },
  { text: 'Tracking: 9400 1000 0000 0000 0000 00' },
  { text: 'Open https://app.example/verify/493201?code=771204 to verify.' },
  { text: 'Verify your email: https://app.example/v?code=771204' },
  { text: 'Write to user493201@app.example' },
  { text: 'Use promo code 493201 for 20% off.' },
  { text: 'Use discount code SAVE2024 at checkout.' },
  { text: 'Gutscheincode: WINTER24' },
  { text: 'You have earned 10000 points. Redeem them today.' },
  { text: 'Card ending in 4932 was charged.' },
  { text: 'Build 493201 failed with error code 4932.' },
  { text: 'PLZ 10115 Berlin, Kundennummer 4932015' },
  { text: 'Votre commande 493201 est en route. Code postal 75011.' },
  { text: '您的订单 493201 已发货。' },
  { text: 'Flight LH4932 departs at 10:45, booking reference X7K9QP.' },
  { text: 'We served 250000 users in 2024.' },
  { text: 'Case 00493201 was updated. Ticket #493201.' },
  { text: 'Verify your email address by clicking the button.\n\nVERIFY EMAIL\n\nEXAMPLE' },
  { text: 'a3f9e210-4932-4932-8201-0123456789ab' },
  { text: 'IBAN DE89 3704 0044 0532 0130 00' },
  {
    subject: 'Re: Your code is 604418',
    text: 'Not me.\n\nOn Fri, Nov 13, 2026, App wrote:\n\nYour code is 604418',
  },
  { text: 'Not me.\n\n> Your code is 604418\n> Bye' },
  { subject: 'AW: Code', text: 'Nein\n-----Ursprüngliche Nachricht-----\nIhr Code lautet 604418' },
  { text: 'Your verification code 604418 has expired. Ask for a new one.' },
  { text: 'Meeting ID: 845 1234 5678\nPasscode: 604418' },
  { text: 'Join by phone: (US) +1 218-555-0143, PIN: 604 418 883#' },
  { text: '25% off with code SPRING26. Your code:\n\nSPRING26\n' },
  { text: 'Kod rabatowy: ZIMA2026' },
  { text: 'クーポンコード：FUYU2026' },
  { text: 'Your verification app follows RFC 6238 to the letter.' },
  { text: 'Sign in at the office, Ste 7320, NMLS ID 1834242.' },
  { text: 'Read these 250000 lines of code' },
  { text: 'In 2025 signing in took longer. Since 2026 signing in is easy.' },
  { text: 'Block 874120 confirmed' },
  { text: 'Kod produktu 604418, codice articolo 604418, 商品コード 604418' },
  { text: 'Your passcode was checked 4829 times.' },
  { html: '<p>Sign in</p><p style="display:none">Your code is 604418</p>' },
  { html: '<p>Sign in</p><p style="color:#fff;background:#ffffff">Your code is 604418</p>' },
  { text: 'Receipt\nVISA **** 4242\nAuth code 604418' },
  { text: 'Invite friends with your code MIA2026 and get $10 each.' },
  { text: 'Reset the password of account 4829134 or user river4821 with the code that we send you.' },
  { text: 'Never use 123456 as your password.' },
  { text: 'In 2026 people used it to open 1204330 of them.' },
  { text: 'O código chega às 15h40.' },
  { text: 'Profitez de -15 % avec le code NOEL15.' },
  { text: 'Use code 5050 at checkout for 50% off.' },
  { text: 'Network: Guest\nPassword: harvest2026\nThe Wi-Fi is free.' },
  { text: 'Type STOP77 to end these reminders, HELP22 for help. See our code of conduct.' },
  { text: 'Reset your password: call 10am-11pm, see /reset?code=604418' },
  { text: 'Cost code 604418, tax code 1257L, course code CS10245' },
  { text: 'Your code is invalid.' },
  { text: 'Job 70754825 exited with code 1' },
  { text: 'Code pushed to main:\n\n8d62406 Fix login code' },
  { text: 'Airport code: EDDF' },
  { subject: 'Hello', text: `${'This is what I wrote. '.repeat(30)}\n> Your code is 604418` },
  { text: 'Your Office365 code is ready in the app.' },
  {
    subject: 'SV: Din kode',
    text: 'Nej\n-----Oprindelig meddelelse-----\nDin bekræftelseskode er 604418',
  },
  { text: 'Sign in with a one-time code:\n\nVERIFY\n' },
  { subject: '[PROJ-48211] Login code page is broken', text: 'Done.' },
  { subject: 'Re: Hello', text: 'Thanks\n> Your code is 604418' },
  { text: '' },
  {},
]

describe('no code is found', () => {
  test.each(mailsWithoutCode)('%j', (send) => expect(codesIn(send)).toEqual([]))
})

test('`text` is as in the mail, and `value` as a user types it', () => {
  expect(codesIn({ subject: 'Your code: G-123456' })).toMatchObject([{ value: '123456', text: 'G-123456' }])
  expect(codesIn({ text: 'Your code is 493-201' })).toMatchObject([{ value: '493201', text: '493-201' }])
  expect(codesIn({ text: '認証コード：１２３４５６' })).toMatchObject([
    { value: '123456', text: '１２３４５６' },
  ])
})

test('a code is found behind many words that could be codes by their letters', () => {
  const [best] = codesIn({ text: `${'xkqwzt pfgtrd '.repeat(500)}\nYour verification code is 493201.` })
  expect(best?.value).toBe('493201')
})

test('invisible characters are part of `text`, and not of `value`', () => {
  expect(codesIn({ text: 'Your \u200bcode is 49\u200b32\u00ad01.' })).toMatchObject([
    { value: '493201', text: '49\u200b32\u00ad01' },
  ])
})

test('a number that is not the code is not listed beside it', () => {
  for (const text of [
    'Mã OTP của bạn là 493201, mã giao dịch 153399.',
    '493201 is your OTP for txn 8837712 of INR 4,500.00',
    'EXMPL: Your verification code is 493201',
    'Your verification code:\n\n493201\n\n94107',
    'Your sign-in code is 493201\n\n882211',
    'Your OTP is KPTX: 493201',
    'Mã OTP: 493201. Mã đơn hàng: 4829156',
  ]) {
    expect(codesIn({ text }).map(({ value }) => value)).toEqual(['493201'])
  }
})

test('all codes of a list are found', () => {
  const list = '48201933\n10394857\n66201948\n'
  const values = ['48201933', '10394857', '66201948']
  for (const text of [list, list.replaceAll('\n', ', '), '1. 4820 1933\n2. 1039 4857\n3. 6620 1948']) {
    expect(codesIn({ text: `Your backup codes:\n\n${text}` }).map(({ value }) => value)).toEqual(values)
  }
  const mixed = ['K7QMX2VD', 'A2C4E6G8', 'WDXKQZTR']
  const lettersFirst = `Your backup codes:\n\n${mixed.toReversed().join('\n')}`
  expect(
    codesIn({ text: lettersFirst })
      .map(({ value }) => value)
      .sort(),
  ).toEqual(mixed.toSorted())
  expect(codesIn({ text: 'Login code 604418 | 4820\n' }).map(({ value }) => value)).toEqual(['604418'])
})

test('a code that is in several parts of a mail is listed once', () => {
  const sent = {
    subject: 'Code 493201',
    text: 'Your code is 493 201',
    html: '<p>Your code is <b>493201</b></p>',
  }
  expect(codesIn(sent).map(({ value }) => value)).toEqual(['493201'])
})

test('codes are listed by confidence, the highest first', () => {
  const sent = {
    text: 'Your verification code is 493201\n\nIf asked, the backup is in line with code page entries 771204',
  }
  expect(codesIn(sent)[0]?.value).toBe('493201')
  const confidences = codesIn(sent).map(({ confidence }) => confidence)
  expect(confidences).toEqual([...confidences].sort((one, other) => other - one))
})

const words = fc.constantFrom(
  ...['code', 'is', 'your', '493201', '12-34', 'G-1234', 'X7K9QP', '１２'],
  ...['-', ' ', '\n', ':', '.', '#'],
)

test('in any input, values have no separators, texts are those of the mail, and confidences are between 0 and 1', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ unit: 'binary' }),
        fc.array(words).map((list) => list.join('')),
      ),
      (text) => {
        for (const code of codesIn({ text })) {
          expect(code.value).toMatch(/^[0-9A-Za-z]{4,20}$/)
          expect(text).toContain(code.text)
          expect(code.confidence).toBeGreaterThan(0)
          expect(code.confidence).toBeLessThan(1)
        }
      },
    ),
  )
})

test.each([
  '1',
  '1 ',
  '1-',
  'A-',
  'code ',
  '493201 ',
  'code 493201\n',
  '#',
  '\n',
  'xn--',
  'https://',
  '12 34 ',
  '@',
  'a@b ',
  '> ',
  'x wrote:\n',
  '<https://x\n',
  'www.',
  'verification',
  'promo code 1234 ',
  '493201 is your code ',
  '验证码',
  'enter 493201 ',
  'use it with 4932 を入力 ',
  'İ',
  '1 - ',
  '48201933, ',
  'backup codes 48201933\n48201933\n',
  'DE89 3704 0044 ',
  'AA11AAAA',
  'h3k9-',
  '৬',
  '604418,5',
  '\u200b',
  '1\u200b',
  '((',
  '493.201·',
  '4932·',
  '4932—',
  'your code is xkqwzt ',
])('megabytes of %j are read', (piece) => {
  const text = piece.repeat(2_000_000 / piece.length)
  expect(codesIn({ subject: text, text }).length).toBeLessThanOrEqual(20)
})
