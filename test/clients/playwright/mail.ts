import { createTransport, type SendMailOptions } from 'nodemailer'

const [host, port] = (process.env.MAYFLY_SMTP ?? '').split(':')
const transport = createTransport({ host, port: Number(port) })

/** Sends a mail to Mayfly. */
export async function send(mail: SendMailOptions): Promise<void> {
  await transport.sendMail({ from: 'no-reply@app.example', ...mail })
}
