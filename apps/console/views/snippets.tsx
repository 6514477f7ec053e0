import { useState } from 'preact/hooks'
import type { Inbox, Message } from '#clients/typescript/src/mayfly.js'
import { CopyButton, Tabs } from '../parts/controls.js'
import { escapedControls } from '../parts/visible-text.js'
import { text } from '../text.js'

const LANGUAGES = [
  ['curl', 'curl'],
  ['typescript', 'TypeScript'],
  ['playwright', 'Playwright'],
  ['python', 'Python'],
] as const

type Language = (typeof LANGUAGES)[number][0]

/** Code that waits for this message. */
export function Snippets({ inbox, message }: { inbox: Inbox; message: Message }) {
  const [language, setLanguage] = useState<Language>('curl')
  const code = snippet(language, inbox, message)
  return (
    <Tabs label={text.mail.language} tabs={LANGUAGES} current={language} onChange={setLanguage}>
      <CopyButton value={code} label={text.copyWhat(text.mail.snippet)} />
      <pre>
        <code>{code}</code>
      </pre>
    </Tabs>
  )
}

function snippet(language: Language, inbox: Inbox, { subject, sender }: Message): string {
  const [name, value] = subject === null ? ['sender', sender] : ['subject', subject]
  const quoted = escapedControls(JSON.stringify(value))
  const options = `{ ${name}: ${quoted} }`
  switch (language) {
    case 'curl':
      return [
        `curl --get ${shellQuoted(`${location.origin}/v1/inboxes/${inbox.id}/messages/wait`)} \\`,
        `  -H "Authorization: Bearer $MAYFLY_KEY" \\`,
        ...(inbox.password_protected ? [`  -H "Mayfly-Inbox-Password: $MAYFLY_INBOX_PASSWORD" \\`] : []),
        `  --data-urlencode ${shellQuoted(`${name}=${value}`)}`,
      ].join('\n')
    case 'typescript':
      return [
        `import { Mayfly } from '@mayfly/client'`,
        ``,
        `const mayfly = new Mayfly()`,
        `const inbox = await mayfly.inboxes.get('${inbox.id}')`,
        `const message = await inbox.waitForMessage(${options})`,
      ].join('\n')
    case 'playwright':
      return [
        `import { test, expect } from '@mayfly/playwright'`,
        ``,
        `test('the mail arrives', async ({ inbox }) => {`,
        `  // Let the application send its mail to inbox.address, then:`,
        `  await expect(inbox).toHaveReceived(${options})`,
        `})`,
      ].join('\n')
    case 'python':
      return [
        `from mayfly_client import Mayfly`,
        ``,
        `mayfly = Mayfly()`,
        `inbox = mayfly.inboxes.get("${inbox.id}")`,
        `message = inbox.wait_for_message(${name}=${quoted})`,
      ].join('\n')
  }
}

/** Subjects come from strangers, so a text is quoted for the shell: in the form with escapes only if it needs one. */
export function shellQuoted(value: string): string {
  const escaped = escapedControls(value.replace(/[\\']/g, '\\$&'))
  return escapedControls(value) === value ? `'${value.replaceAll("'", `'\\''`)}'` : `$'${escaped}'`
}
