import { shellQuoted } from './snippets.js'

/*
 * The settings with which applications send mail to this server, as docs/sending.md has them.
 */

export const SENDERS = [
  ['node', 'Node.js'],
  ['django', 'Django'],
  ['laravel', 'Laravel'],
  ['rails', 'Rails'],
  ['spring', 'Spring'],
  ['go', 'Go'],
  ['curl', 'curl'],
  ['swaks', 'swaks'],
] as const

export type Sender = (typeof SENDERS)[number][0]

export function sendingWith(
  sender: Sender,
  { host, port, address }: { host: string; port: number; address: string },
): string {
  switch (sender) {
    case 'node':
      return [
        `import nodemailer from 'nodemailer'`,
        ``,
        `const mailer = nodemailer.createTransport({ host: '${host}', port: ${port} })`,
        `await mailer.sendMail({`,
        `  from: 'app@example.com',`,
        `  to: ${JSON.stringify(address)},`,
        `  subject: 'Your code is 493201',`,
        `  text: 'Hello.',`,
        `})`,
      ].join('\n')
    case 'django':
      return [`# settings.py`, `EMAIL_HOST = '${host}'`, `EMAIL_PORT = ${port}`].join('\n')
    case 'laravel':
      return [`# .env`, `MAIL_MAILER=smtp`, `MAIL_HOST=${host}`, `MAIL_PORT=${port}`].join('\n')
    case 'rails':
      return [
        `# config/environments/development.rb`,
        `config.action_mailer.delivery_method = :smtp`,
        `config.action_mailer.smtp_settings = { address: '${host}', port: ${port} }`,
      ].join('\n')
    case 'spring':
      return [`# application.properties`, `spring.mail.host=${host}`, `spring.mail.port=${port}`].join('\n')
    case 'go':
      return [
        `message := []byte("Subject: Your code is 493201\\r\\n\\r\\nHello.\\r\\n")`,
        `err := smtp.SendMail("${host}:${port}", nil, "app@example.com", []string{${JSON.stringify(address)}}, message)`,
      ].join('\n')
    case 'curl':
      return [
        `printf 'Subject: Your code is 493201\\r\\n\\r\\nHello.\\r\\n' |`,
        `  curl smtp://${host}:${port} --mail-from app@example.com --mail-rcpt ${shellQuoted(address)} -T -`,
      ].join('\n')
    case 'swaks':
      return `swaks --server ${host}:${port} --to ${shellQuoted(address)} --header "Subject: Your code is 493201"`
  }
}
