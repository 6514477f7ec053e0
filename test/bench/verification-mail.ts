/** A verification mail of about 1.5 KB in plain text with a code and a link; a different one for each number. */
export function verificationMail(number: number, to: string): string {
  const code = String(100_000 + ((number * 7_919) % 900_000))
  const token = (number * 2_654_435_761).toString(36).padStart(24, 'x')
  const lines = [
    'Received: from out.app.example (out.app.example [192.0.2.10]) by mx.app.example with ESMTPS; ' +
      'Thu, 19 Nov 2026 10:00:00 +0000',
    'From: "The App" <no-reply@app.example>',
    `To: ${to}`,
    `Subject: ${code} is your verification code`,
    `Message-ID: <${token}@app.example>`,
    'Date: Thu, 19 Nov 2026 10:00:00 +0000',
    'MIME-Version: 1.0',
    'Content-Type: text/plain; charset=utf-8',
    'Content-Transfer-Encoding: 7bit',
    `List-Unsubscribe: <https://app.example/unsubscribe?u=${token}>`,
    'X-Mailer: app-mailer/4.2',
    '',
    'Hello,',
    '',
    'Somebody, hopefully you, is signing in to The App with this address for',
    'the first time on this device. To go on, type this verification code:',
    '',
    `    ${code}`,
    '',
    'It is good for ten minutes, and for one sign-in. Or follow this link:',
    '',
    `https://app.example/verify?token=${token}&source=mail`,
    '',
    'If this was not you, do nothing: without the code nobody gets in. Should',
    'it happen again, change your password and tell us at the address below.',
    '',
    'The App, 1 Example Street, Springfield',
    'https://app.example/help',
    '',
  ]
  return lines.join('\r\n')
}
