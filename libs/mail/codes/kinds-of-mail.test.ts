import { anyEnvelope } from '#test/harness/envelope.js'
import { readHtml } from '../links/visible-text.js'
import { parseMail } from '../parse.js'
import { findCodes } from './codes.js'

/** Short mails by kind: the text, and the codes that its reader would type. */
const texts: Record<string, (readonly [text: string, ...codes: string[]])[]> = {
  'a masked card or account number beside a code': [
    ['Your code is 493201 for card xxxx1234.', '493201'],
    ['Use code 493201 to confirm the purchase with your card **1234.', '493201'],
    ['493201 is the OTP for your txn of INR 4,500.00 at BigStore on card XX1234. Do not share it.', '493201'],
    ['Your account ending in 4821 was signed in to. Not you? Reset your password.'],
    ['A sign-in code was sent to the phone number ending in 4417.'],
    ['Security alert: card ****4821 was used for a purchase of 120.00 EUR.'],
  ],
  'a sentence that is wrapped at 72 to 78 columns': [
    ['Somebody (we hope it was you) wants to sign in to Larkspur. Your sign-in\ncode is 493201.', '493201'],
    [
      'Hello Marian, to finish the registration of your new account please use the\nverification code 493201 within the next ten minutes.',
      '493201',
    ],
    [
      'Hallo Jonas, für die Anmeldung bei Ihrem Kundenkonto lautet der einmalige\nSicherheitscode 590317. Er gilt zehn Minuten.',
      '590317',
    ],
    [
      'We received a request to reset the password of your account. The code is\n493201 and works once.',
      '493201',
    ],
    [
      'Your parcel with the order number that we told you of in our last letter,\n4829156, has left the warehouse.',
    ],
    [
      'Thank you for shopping with us. Your order was packed today and carries the\ntracking number 48291560.',
    ],
  ],
  'capitals throughout': [
    ['YOUR VERIFICATION CODE IS 493201. IT EXPIRES IN 10 MINUTES.', '493201'],
    ['DEAR CUSTOMER, 493201 IS YOUR OTP FOR NET BANKING LOGIN. DO NOT SHARE.', '493201'],
    ['YOUR ORDER 4829156 HAS SHIPPED. TRACKING NUMBER 94001000.'],
    ['IHR BESTÄTIGUNGSCODE LAUTET 590317. BITTE NICHT WEITERGEBEN.', '590317'],
    ['SU CÓDIGO DE VERIFICACIÓN ES 662190', '662190'],
    ['CALL 0800 123456 OR VISIT YOUR BRANCH, 12 MAIN STREET, LONDON.'],
  ],
  'a date beside a code': [
    ['2026-11-21 Your verification code is 493201.', '493201'],
    ['Your verification code is 493201, valid until 21.11.2026 10:45.', '493201'],
    ['Report 20261121 was created.'],
    ['The maintenance window is 20261121 to 20261122.'],
  ],
  'an amount, a phone number or a time beside a code': [
    ['Your code is 493201. You will be charged $1250.00.', '493201'],
    ['To approve the payment of EUR 4500 enter 493201.', '493201'],
    ['Your code: 493201. Questions? Call +1 555 010 4477.', '493201'],
    ['Your code is 493201. Need help? Call 0800 555 0143.', '493201'],
    ['At 10:45 you asked for a code: 493201', '493201'],
    ['Your transfer of 250000 JPY needs the TAN 590317.', '590317'],
    ['You sent 4500 USD to Ann at 10:45.'],
    ['Call 555 0143 to confirm your appointment.'],
  ],
  'an order, ticket or customer number beside a code': [
    ['Order 4829156: your pickup code is 4417.', '4417'],
    ['Your confirmation code for ticket 998877 is 493201.', '493201'],
    ['Customer number 4829156\nVerification code 493201', '493201'],
    ['Ticket #48291 was answered. Your reference is 4829156.'],
    ['Invoice 204815 for customer 4829156 is attached.'],
    ['Your verification code is 493201. Reference: 998877.', '493201'],
  ],
  'a year, a postcode, a version or a port beside a code': [
    ['Your code is 493201.\n\nLarkspur Ltd, 10115 Berlin', '493201'],
    ['Your code is 493201.\n\n(c) 2026 Larkspur, Springfield, IL 62704', '493201'],
    ['Version 20481 fixes the sign-in page.'],
    ['The server listens on port 8443 and redirects port 8080.'],
    ['Your security code is 8443.', '8443'],
    ['Larkspur GmbH, PLZ 10115, Tel. 030 1234567'],
  ],
  'spaces, dashes and prefixes': [
    ['Your code is 123 456.', '123456'],
    ['Your code is 123-456.', '123456'],
    ['Your code is 1234 5678', '12345678'],
    ['Your code is 12 34 56', '123456'],
    ['G-482913 is your Google verification code.', '482913'],
    ['Slack confirmation code: ABC-123', 'ABC123'],
    ['Your code: K7Q-9XP', 'K7Q9XP'],
    ['Your code is 1-2-3-4-5-6', '123456'],
    ['Enter the code BCDF-GHJK on your TV.', 'BCDFGHJK'],
    ['Enter the code 4 9 3 2 0 1 to continue.', '493201'],
  ],
  'several codes': [
    [
      'Your recovery codes:\n\n1. 4820-1933\n2. 1039-4857\n3. 6620-1948\n',
      '48201933',
      '10394857',
      '66201948',
    ],
    ['Your backup codes: 48201933, 10394857, 66201948', '48201933', '10394857', '66201948'],
    ['Backup codes:\nh3k9-2mzp\nq8w2-7rtn\n', 'h3k92mzp', 'q8w27rtn'],
    ['Your login code is 493201. Your pickup code is 4417.', '493201', '4417'],
    ['Numbers of this week:\n\n48201933\n10394857\n'],
  ],
  'a number alone on its line': [
    ['Your verification code:\n\n493201\n\nIt expires soon.', '493201'],
    ['493201\n\nThis is your verification code.', '493201'],
    ['Enter this code to finish signing in\n\n    493 201\n', '493201'],
    ['Hello Ann,\n\n*493201*\n\nis the code for your sign-in.', '493201'],
    ['Code\nX7K9QP\n', 'X7K9QP'],
    ['Order number:\n4829156\n\nThank you.'],
    ['Your order number\n\n4829156\n\nWe will write when it ships.'],
  ],
  'other languages': [
    ['Ihr Code lautet: 590317', '590317'],
    ['Geben Sie 590317 ein, um sich anzumelden.', '590317'],
    ['590317 ist Ihr Bestätigungscode für Larkspur.', '590317'],
    ['Ihre Bestellnummer lautet 4829156.'],
    ['Voici votre code de connexion : 771204', '771204'],
    ['771204 est votre code de vérification.', '771204'],
    ['Saisissez 771204 pour confirmer votre adresse.', '771204'],
    ['Votre numéro de commande est le 4829156.'],
    ['Introduce 662190 para iniciar sesión.', '662190'],
    ['662190 es tu código de seguridad.', '662190'],
    ['Tu pedido 4829156 está en camino.'],
    ['Use o código 338204 para entrar na sua conta.', '338204'],
    ['338204 é o seu código de confirmação.', '338204'],
    ['認証コードは 604418 です。', '604418'],
    ['ログインするには 604418 を入力してください。', '604418'],
    ['ご注文番号 4829156 の商品を発送しました。'],
    ['【Larkspur】您的验证码为604418,请勿泄露。', '604418'],
    ['604418（登录验证码），5分钟内有效。', '604418'],
    ['您的订单编号 4829156 已发货。'],
    ['인증번호는 604418입니다.', '604418'],
    ['주문번호 4829156 상품이 발송되었습니다.'],
    ['رمز التحقق: 604418', '604418'],
    ['رقم الطلب 4829156'],
    ['604418 — ваш код подтверждения.', '604418'],
    ['Введите 604418, чтобы войти.', '604418'],
    ['Ваш заказ 4829156 отправлен.'],
  ],
}

describe.each(Object.entries(texts))('codes in mail with %s', (_, cases) => {
  test.each(cases)('%j', (text, ...codes) => {
    expect(findCodes(null, text, null, 20).map(({ value }) => value)).toEqual(codes)
  })
})

const pages: (readonly [html: string, ...codes: string[]])[] = [
  ['<table><tr><td>Code</td><td>493201</td></tr><tr><td>Order</td><td>4829156</td></tr></table>', '493201'],
  ['<table><tr><td>493201</td><td>is your code</td></tr></table>', '493201'],
  ['<table><tr><th>Your verification code</th></tr><tr><td>493201</td></tr></table>', '493201'],
  ['<table><tr><td>Order</td><td>4829156</td></tr><tr><td>Total</td><td>4500</td></tr></table>'],
  ['<p>Use this code:</p><table><tr><td><b>X7K9QP</b></td></tr></table>', 'X7K9QP'],
]

test.each(pages)('codes in a table: %j', (html, ...codes) => {
  expect(findCodes(null, null, readHtml(html).text, 20).map(({ value }) => value)).toEqual(codes)
})

const sources: Record<string, (readonly [source: string, ...codes: string[]])[]> = {
  'quoted-printable with soft line breaks': [
    [
      'Content-Transfer-Encoding: quoted-printable\n\nSomebody wants to sign in to your account. To let them in, your code is 493=\n201.',
      '493201',
    ],
    [
      'Content-Transfer-Encoding: quoted-printable\n\nVotre code de v=C3=A9rification pour l=E2=80=99espace client est le suivant=\n : 771204',
      '771204',
    ],
  ],
  'format=flowed': [
    [
      'Content-Type: text/plain; format=flowed\n\nSomebody wants to sign in to your account at Larkspur. The code that \nlets them in is \n493201.',
      '493201',
    ],
    [
      'Content-Type: text/plain; format=flowed\n\nYour parcel was packed today and the number that it travels under is \n48291560.',
    ],
  ],
  'a reply that quotes an older mail': [
    [
      'Subject: Re: Your code\n\nYour new code is 493201.\n\n> Your code is 604418.\n> It expires in ten minutes.',
      '493201',
    ],
    [
      'Subject: Re: Your code\n\nYour new code is 493201.\n\nOn Fri, Nov 13, 2026 at 10:45, Larkspur <no-reply@larkspur.example> wrote:\nYour code is 604418.',
      '493201',
    ],
    ['Subject: Fwd: code\n\n---------- Forwarded message ---------\nYour code is 604418.', '604418'],
    ['Subject: Your code\n\nThe old code 604418 has expired. Your new code is 493201.', '493201'],
  ],
}

describe.each(Object.entries(sources))('codes in mail with %s', (_, cases) => {
  test.each(cases)('%j', (source, ...codes) => {
    const { codes: found } = parseMail(Buffer.from(source.replaceAll('\n', '\r\n')), anyEnvelope)
    expect(found.map(({ value }) => value)).toEqual(codes)
  })
})
