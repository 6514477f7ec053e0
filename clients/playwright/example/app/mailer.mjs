import { createTransport } from 'nodemailer'
import { escapeHtml } from './pages.mjs'

// In tests, the mail server is Mayfly.
const [host, port] = (process.env.MAYFLY_SMTP ?? '127.0.0.1:2525').split(':')
const transport = createTransport({ host, port: Number(port), secure: false })

const LOGO =
  '<svg xmlns="http://www.w3.org/2000/svg" width="120" height="40"><rect width="120" height="40" rx="8" fill="#2563eb"/>' +
  '<text x="60" y="26" fill="white" text-anchor="middle" font-family="sans-serif">Example</text></svg>'

export async function sendSignupMail({ to, code, link }) {
  await transport.sendMail({
    from: 'Example <no-reply@app.example>',
    to,
    subject: `Your code is ${code}`,
    text: `Your code is ${code}. Or open this link: ${link}`,
    html: `<div style="font-family: sans-serif">
        <img src="cid:logo@app.example" alt="Example" width="120" height="40">
        <h1>Confirm your email address</h1>
        <p>Your code is <strong>${code}</strong>.</p>
        <p><a href="${escapeHtml(link)}">Verify your address</a></p>
      </div>`,
    attachments: [
      { filename: 'logo.svg', content: LOGO, contentType: 'image/svg+xml', cid: 'logo@app.example' },
    ],
  })
}
