const BOUNDARY = '=_part_7f3a91c2'
const BYTES = 5_120

const PARAGRAPH =
  'Thank you for signing up. Before you can invite your team we need to know that this address is yours. ' +
  'The code is good for thirty minutes, and asking for another one makes this one void.'

/** A sign-up mail of 5 KB with a text and an HTML part, a code and links; a different one for each number. */
export function realisticMail(number: number, to: string): string {
  const id = `${number.toString(36)}.${(number * 2_654_435_761) % 4_294_967_296}`
  const code = String(100_000 + (number % 900_000))
  const link = `https://app.example/verify?token=${id}&source=mail`
  const head = [
    'Return-Path: <bounces@app.example>',
    'Received: from out.app.example (out.app.example [192.0.2.10]) by mx.app.example with ESMTPS; ' +
      'Thu, 19 Nov 2026 10:00:00 +0000',
    'From: "The App" <no-reply@app.example>',
    `To: ${to}`,
    `Subject: =?utf-8?Q?Your_code_is_${code}_=E2=80=93_please_confirm?=`,
    `Message-ID: <${id}@app.example>`,
    'Date: Thu, 19 Nov 2026 10:00:00 +0000',
    'MIME-Version: 1.0',
    `List-Unsubscribe: <https://app.example/unsubscribe?u=${id}>`,
    `Content-Type: multipart/alternative; boundary="${BOUNDARY}"`,
    '',
  ]
  const text = [
    `--${BOUNDARY}`,
    'Content-Type: text/plain; charset=utf-8',
    'Content-Transfer-Encoding: 7bit',
    '',
    'Hello,',
    '',
    ...wrapped(PARAGRAPH),
    '',
    `Your code is ${code}.`,
    '',
    `Or follow this link: ${link}`,
    '',
  ]
  const html = [
    `--${BOUNDARY}`,
    'Content-Type: text/html; charset=utf-8',
    'Content-Transfer-Encoding: quoted-printable',
    '',
    '<!doctype html><html><head><meta charset=3D"utf-8"><title>Confirm</title></head>',
    '<body style=3D"margin:0;font-family:sans-serif"><table width=3D"100%"><tr><td>',
    ...rows(link.replaceAll('=', '=3D'), code),
    '</td></tr></table></body></html>',
    `--${BOUNDARY}--`,
    '',
  ]
  const lines = [...head, ...text, ...html]
  const bytes = lines.reduce((sum, line) => sum + line.length + 2, 0)
  // The filler is after the last boundary, where parsers ignore it.
  return [...lines, ...filler(BYTES - bytes)].join('\r\n')
}

function rows(link: string, code: string): string[] {
  const row = (content: string) => [
    '<tr><td style=3D"padding:16px 24px;color:#222;line-height:1.5">',
    ...wrapped(content),
    '</td></tr>',
  ]
  return [
    ...row(`<p>${PARAGRAPH}</p>`),
    ...row(`<p>Your code is <b style=3D"font-size:24px">${code}</b></p>`),
    '<tr><td><a style=3D"background:#06c;color:#fff;padding:12px" href=3D"=',
    `${link}=`,
    '">Confirm your address</a></td></tr>',
    ...['docs', 'pricing', 'status', 'support'].flatMap((page) =>
      row(`<a href=3D"https://app.example/${page}">More about ${page}</a><p>${PARAGRAPH}</p>`),
    ),
    ...row(
      '<p>You get this mail because somebody entered your address at app.example =E2=80=93 was it you?</p>',
    ),
  ]
}

function wrapped(text: string): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const line = lines.at(-1)
    if (line === undefined || line.length + word.length > 70) lines.push(word)
    else lines[lines.length - 1] = `${line} ${word}`
  }
  return lines
}

function filler(bytes: number): string[] {
  const lines = Array.from({ length: Math.max(Math.floor(bytes / 72), 0) }, () => '-'.repeat(70))
  return [...lines, '']
}
