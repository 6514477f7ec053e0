import { z } from 'zod'

/*
 * Arguments that several tools take. The API validates their values; here only what can't be sent is refused.
 */

const id = z.string().regex(/^\w{1,100}$/)
export const inboxId = id.describe('The id of the inbox, such as inb_….')
export const inboxIdOrAddress = z
  .string()
  .regex(/^(\w{1,100}|.{1,64}@.{1,255})$/)
  .describe('The id of the inbox, such as inb_…, or its address.')
export const messageId = id.describe('The id of the message, such as msg_….')

export const password = z
  .string()
  .regex(/^[\x21-\x7e]{1,200}$/)
  .optional()
  .describe('The password of a protected inbox, from the result of create_inbox.')

export const cursor = z
  .string()
  .max(200)
  .optional()
  .describe('Only messages after this position: the cursor of another result.')

export const labels = z.record(z.string(), z.string()).optional()
export const text = z.string().max(1_000).optional()

export const extract = z
  .string()
  .max(500)
  .optional()
  .describe(
    'A regular expression in the syntax of RE2, such as `order ([0-9]+)`, that is searched in subject, text and visible ' +
      'text. The result has its matches as extracted. A wait also requires a match.',
  )

export const filters = {
  extract,
  subject: text.describe(
    'The subject contains this text. Upper and lower case are the same, in all filters.',
  ),
  sender: text.describe("The sender's address or name contains this text."),
  recipient: text.describe('The recipient contains this text.'),
  detail: text.describe('What follows + in the recipient contains this text.'),
  text: text.describe('The text, or the visible text of the HTML, contains this text.'),
}
