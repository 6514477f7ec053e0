import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createInbox, mail, messagesOf, only } from '#test/harness/client.js'
import { startMayfly, type Mayfly } from '#test/harness/mayfly.js'
import { pythonWithPackages } from '#test/harness/python.js'
import { sharedMayfly } from '#test/harness/shared-mayfly.js'
import { describeWith, type Tool } from '#test/harness/tools.js'

const run = promisify(execFile)
const GUIDE = join(process.cwd(), 'docs/sending.md')
const JAVA_MAIL = ['jakarta-mail', 'jakarta-activation']
  .map((name) => `/usr/share/java/${name}.jar`)
  .join(':')
/** Kept between runs, because Go first compiles its TLS library. */
const GOCACHE = join(process.cwd(), 'node_modules/.cache/mayfly/go')
const RUN_WITHIN_MS = 90_000

/** A program around the configuration in the guide. It sends a mail with the library's name as the subject. */
interface Library {
  heading: string
  needs: readonly Tool[]
  /** Whether it uses STARTTLS by default if that is offered, and verifies the certificate. */
  triesStartTls?: boolean
  /** `CONFIG` is the guide's block. The recipient is in the environment variable ADDRESS. */
  file: string
  program: string
  /** `FILE` is the program. */
  command: readonly string[]
}

const LIBRARIES: readonly Library[] = [
  {
    heading: 'Nodemailer',
    needs: [],
    triesStartTls: true,
    file: 'send.mjs',
    program: `import nodemailer from '${import.meta.resolve('nodemailer')}'
CONFIG
const message = { from: 'app@example.com', to: process.env.ADDRESS, subject: 'Nodemailer', text: 'Hello.' }
await mailer.sendMail(message)
`,
    command: [process.execPath, 'FILE'],
  },
  {
    heading: 'Python smtplib',
    needs: ['python3'],
    file: 'send.py',
    program: `import os, smtplib
from email.message import EmailMessage
CONFIG
message = EmailMessage()
message['From'], message['To'] = 'app@example.com', os.environ['ADDRESS']
message['Subject'] = 'Python smtplib'
message.set_content('Hello.')
smtp.send_message(message)
smtp.quit()
`,
    command: ['python3', 'FILE'],
  },
  {
    heading: 'Django',
    needs: ['python-packages'],
    file: 'send.py',
    program: `import os
CONFIG
import django.conf, django.core.mail
django.conf.settings.configure(**{name: value for name, value in globals().items() if name.startswith('EMAIL')})
django.core.mail.send_mail('Django', 'Hello.', 'app@example.com', [os.environ['ADDRESS']])
`,
    command: ['PYTHON', 'FILE'],
  },
  {
    heading: 'aiosmtplib',
    needs: ['python-packages'],
    triesStartTls: true,
    file: 'send.py',
    program: `import asyncio, os, aiosmtplib
from email.message import EmailMessage

async def main():
    CONFIG
    message = EmailMessage()
    message['From'], message['To'] = 'app@example.com', os.environ['ADDRESS']
    message['Subject'] = 'aiosmtplib'
    message.set_content('Hello.')
    async with smtp:
        await smtp.send_message(message)

asyncio.run(main())
`,
    command: ['PYTHON', 'FILE'],
  },
  {
    heading: 'Ruby mail',
    needs: ['ruby-mail'],
    triesStartTls: true,
    file: 'send.rb',
    program: `require 'mail'
CONFIG
Mail.defaults { delivery_method :smtp, settings }
Mail.deliver { from 'app@example.com'; to ENV['ADDRESS']; subject 'Ruby mail'; body 'Hello.' }
`,
    command: ['ruby', 'FILE'],
  },
  {
    heading: 'Ruby Net::SMTP',
    needs: ['ruby-mail'],
    triesStartTls: true,
    file: 'send.rb',
    program: `require 'net/smtp'
CONFIG
smtp.send_message("Subject: Ruby Net::SMTP\\r\\n\\r\\nHello.\\r\\n", 'app@example.com', ENV['ADDRESS'])
smtp.finish
`,
    command: ['ruby', 'FILE'],
  },
  {
    heading: 'PHPMailer',
    needs: ['php-mailers'],
    triesStartTls: true,
    file: 'send.php',
    program: `<?php
require '/usr/share/php/libphp-phpmailer/autoload.php';
$mailer = new PHPMailer\\PHPMailer\\PHPMailer(true);
CONFIG
$mailer->setFrom('app@example.com');
$mailer->addAddress(getenv('ADDRESS'));
$mailer->Subject = 'PHPMailer';
$mailer->Body = 'Hello.';
$mailer->send();
`,
    command: ['php', 'FILE'],
  },
  {
    heading: 'Symfony Mailer',
    needs: ['php-mailers'],
    triesStartTls: true,
    file: 'send.php',
    program: `<?php
require 'Symfony/Component/Mailer/autoload.php';
require 'Symfony/Component/Mime/autoload.php';
require 'Symfony/Component/EventDispatcher/autoload.php';
$dsn = substr(trim('CONFIG'), strlen('MAILER_DSN='));
$mailer = new Symfony\\Component\\Mailer\\Mailer(Symfony\\Component\\Mailer\\Transport::fromDsn($dsn));
$email = (new Symfony\\Component\\Mime\\Email())->from('app@example.com')->to(getenv('ADDRESS'));
$mailer->send($email->subject('Symfony Mailer')->text('Hello.'));
`,
    command: ['php', 'FILE'],
  },
  {
    heading: 'Java Mail',
    needs: ['java-mail'],
    file: 'Send.java',
    program: `import jakarta.mail.*;
import jakarta.mail.internet.*;
import java.io.StringReader;
import java.util.Properties;

public class Send {
  public static void main(String[] args) throws Exception {
    Properties properties = new Properties();
    properties.load(new StringReader("""
CONFIG
"""));
    Session session = Session.getInstance(properties);
    MimeMessage message = new MimeMessage(session);
    message.setFrom("app@example.com");
    message.setRecipients(Message.RecipientType.TO, System.getenv("ADDRESS"));
    message.setSubject("Java Mail");
    message.setText("Hello.");
    Transport.send(message, "any", "any");
  }
}
`,
    command: ['java', '-cp', JAVA_MAIL, 'FILE'],
  },
  {
    heading: 'Go net/smtp',
    needs: ['go'],
    triesStartTls: true,
    file: 'send.go',
    program: `package main

import (
	"log"
	"net/smtp"
	"os"
)

CONFIG

func main() {
	message := []byte("Subject: Go net/smtp\\r\\n\\r\\nHello.\\r\\n")
	if err := smtp.SendMail(server, auth, "app@example.com", []string{os.Getenv("ADDRESS")}, message); err != nil {
		log.Fatal(err)
	}
}
`,
    command: ['go', 'run', 'FILE'],
  },
  {
    heading: 'curl',
    needs: ['curl'],
    file: 'send.sh',
    program: `printf 'From: app@example.com\\r\\nSubject: curl\\r\\n\\r\\nHello.\\r\\n' > mail.eml\nCONFIG\n`,
    command: ['sh', '-eu', 'FILE'],
  },
  {
    heading: 'swaks',
    needs: ['swaks'],
    file: 'send.sh',
    program: 'CONFIG\n',
    command: ['sh', '-eu', 'FILE'],
  },
  {
    heading: 'msmtp',
    needs: ['msmtp'],
    file: 'msmtprc',
    program: 'CONFIG\n',
    command: ['sh', '-euc', `printf 'Subject: msmtp\\n\\nHello.\\n' | msmtp -C "$0" "$ADDRESS"`, 'FILE'],
  },
]

/** The first block of code under a heading of the guide. */
async function configUnder(heading: string): Promise<string> {
  const [, section = ''] = (await readFile(GUIDE, 'utf8')).split(`\n### ${heading}\n`)
  const [, code = ''] = /^```\w+\n(.*?)\n```$/ms.exec(section) ?? []
  return code
}

describe('docs/sending.md', () => {
  let folder: string
  /** Offers TLS with its own certificate, and discards foreign recipients. */
  let secured: Mayfly

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mayfly-sending-'))
    const env = {
      MAYFLY_SMTP_TLS: 'self-signed',
      MAYFLY_SMTPS_PORT: '0',
      MAYFLY_UNKNOWN_RECIPIENTS: 'discard',
    }
    secured = await startMayfly({ isOneProcess: true, env })
  })
  afterAll(async () => {
    await secured.dispose()
    await rm(folder, { recursive: true, force: true })
  })

  /** Writes the program with the configuration of the guide, but with another port, and runs it. */
  async function sendBy(
    { heading, file, program, command }: Library,
    port: number,
    env: Readonly<Record<string, string>>,
  ): Promise<void> {
    const config = await configUnder(heading)
    expect(config).toMatch(/\b2525\b/)
    const cwd = await mkdtemp(join(folder, 'program-'))
    const path = join(cwd, file)
    const indented = program.replace(/^( +)CONFIG$/m, (_, indent: string) => config.replaceAll(/^/gm, indent))
    const source = indented.replace('CONFIG', config).replaceAll(/\b2525\b/g, String(port))
    // msmtp refuses a configuration file that others can read.
    await writeFile(path, source, { mode: 0o600 })
    const python = command.includes('PYTHON') ? await pythonWithPackages() : ''
    const [name = '', ...args] = command.map((word) => word.replace('FILE', path).replace('PYTHON', python))
    await run(name, args, {
      cwd,
      env: { PATH: process.env.PATH, HOME: cwd, CGO_ENABLED: '0', GOCACHE, ...env },
      timeout: RUN_WITHIN_MS,
    })
  }

  for (const library of LIBRARIES) {
    describeWith(...library.needs)(library.heading, () => {
      it('sends with the shown configuration to a server with default settings', async () => {
        const mayfly = await sharedMayfly()
        const { id, address } = await createInbox(mayfly)
        await sendBy(library, mayfly.smtpPort, { ADDRESS: address })
        expect(only(await messagesOf(mayfly, id, 1)).subject).toBe(library.heading)
      })

      if (library.triesStartTls !== true) return
      it('sends over STARTTLS if it trusts the authority', async () => {
        const { id, address } = await createInbox(secured)
        const caFile = secured.smtpCaFile ?? ''
        const trust = { SSL_CERT_FILE: caFile, NODE_EXTRA_CA_CERTS: caFile }
        await sendBy(library, secured.smtpPort, { ADDRESS: address, ...trust })
        const message = only(await messagesOf(secured, id, 1))
        expect(message).toMatchObject({ subject: library.heading, envelope: { tls: { version: 'TLSv1.3' } } })
      })
    })
  }

  describeWith('java-mail')('Java Mail', () => {
    it('reaches the inbox when another recipient is foreign and discarded', async () => {
      const java = LIBRARIES.find(({ heading }) => heading === 'Java Mail')
      if (java === undefined) throw new Error('no such library')
      const { id, address } = await createInbox(secured)
      await sendBy(java, secured.smtpPort, { ADDRESS: `support@company.test, ${address}` })
      expect(only(await messagesOf(secured, id, 1)).subject).toBe('Java Mail')
    })
  })

  describeWith('curl')('curl', () => {
    it.each(['XOAUTH2', 'OAUTHBEARER'])('sends with a token by %s', async (mechanism) => {
      const mayfly = await sharedMayfly()
      const { id, address } = await createInbox(mayfly)
      const file = join(folder, 'mail.eml')
      await writeFile(file, mail('curl'))
      const token = ['--user', 'any:', '--oauth2-bearer', 'x'.repeat(3_000)]
      const auth = [...token, '--login-options', `AUTH=${mechanism}`]
      const addresses = ['--mail-from', 'a@example.com', '--mail-rcpt', address]
      const url = `smtp://127.0.0.1:${mayfly.smtpPort}`
      await run('curl', ['-sS', url, ...auth, ...addresses, '-T', file], { timeout: RUN_WITHIN_MS })
      expect(only(await messagesOf(mayfly, id, 1)).subject).toBe('curl')
    })

    it.each(['STARTTLS', 'implicit TLS'])('verifies the certificate with --cacert over %s', async (kind) => {
      const { id, address } = await createInbox(secured)
      const file = join(folder, 'mail.eml')
      await writeFile(file, mail('curl'))
      const url =
        kind === 'STARTTLS'
          ? `smtp://localhost:${secured.smtpPort}`
          : `smtps://127.0.0.1:${secured.smtpsPort}`
      const trust = ['--ssl-reqd', '--cacert', secured.smtpCaFile ?? '']
      const addresses = ['--mail-from', 'a@example.com', '--mail-rcpt', address]
      await run('curl', ['-sS', url, ...trust, ...addresses, '-T', file], { timeout: RUN_WITHIN_MS })
      const message = only(await messagesOf(secured, id, 1))
      expect(message).toMatchObject({ envelope: { tls: { version: 'TLSv1.3' } } })
    })
  })
})
