import { findLink, type Inbox, type MatchOptions, type Message, type WaitOptions } from '@mayfly/client'
import type { Page } from '@playwright/test'
import { renderMail, type RenderOptions } from './mail-html.js'

/** A message that can be shown in a page. */
export interface PageMessage extends Message {
  /**
   * Shows the HTML of the mail in the page, or its text if it has no HTML. The page is then at about:blank, without
   * the cookies of the application. Scripts do not run, and nothing is loaded from the web unless `allowRemote` is set.
   */
  open(page: Page, options?: RenderOptions): Promise<void>
  /**
   * Opens the first link that contains a text, or matches an expression, in its address or its text; without a
   * pattern, the first link.
   */
  clickLink(page: Page, pattern?: string | RegExp): Promise<void>
}

/** An inbox whose messages can be shown in a page. */
export interface PageInbox extends Inbox {
  waitForMessage(options?: WaitOptions): Promise<PageMessage>
  waitForCount(count: number, options?: MatchOptions): Promise<PageMessage[]>
  listMessages(options?: Parameters<Inbox['listMessages']>[0]): Promise<PageMessage[]>
  getMessage(...args: Parameters<Inbox['getMessage']>): Promise<PageMessage>
}

/** Adds `open` and `clickLink` to all messages that the inbox returns. */
export function withPageMessages(inbox: Inbox): PageInbox {
  const waitForMessage = inbox.waitForMessage.bind(inbox)
  const waitForCount = inbox.waitForCount.bind(inbox)
  const listMessages = inbox.listMessages.bind(inbox)
  const getMessage = inbox.getMessage.bind(inbox)
  return Object.assign(inbox, {
    waitForMessage: async (options?: WaitOptions) => toPageMessage(await waitForMessage(options)),
    waitForCount: async (count: number, options?: MatchOptions) =>
      (await waitForCount(count, options)).map(toPageMessage),
    listMessages: async (options?: Parameters<Inbox['listMessages']>[0]) =>
      (await listMessages(options)).map(toPageMessage),
    getMessage: async (...args: Parameters<Inbox['getMessage']>) => toPageMessage(await getMessage(...args)),
  })
}

function toPageMessage(message: Message): PageMessage {
  return Object.assign(message, {
    async open(page: Page, options?: RenderOptions): Promise<void> {
      const html = await renderMail(message, options)
      await page.goto('about:blank')
      await page.setContent(html)
    },
    async clickLink(page: Page, pattern: string | RegExp = ''): Promise<void> {
      await page.goto(hrefOf(message, pattern))
    },
  })
}

function hrefOf(message: Message, pattern: string | RegExp): string {
  const href = findLink(message, pattern)
  if (href !== undefined) return href
  const list = message.links.map((link) => `\n  ${JSON.stringify(link.text ?? '')} ${link.href}`).join('')
  const links = list === '' ? '' : ` Its links:${list}`
  throw new Error(`The message has no link that matches ${String(pattern)}.${links}`)
}
