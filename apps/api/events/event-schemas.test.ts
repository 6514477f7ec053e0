import { readFile } from 'node:fs/promises'
import { WEBHOOK_EVENT_TYPES } from '#libs/domain/webhook/events.js'
import { renderEventBodies } from './event-schemas.js'

const cellsOf = (table: string) =>
  table
    .split('\n')
    .filter((line) => /^\| `\w+\.\w+`/.test(line))
    .map((line) => line.split('|').map((cell) => cell.trim()))

describe('all events that webhooks send, and no others (npm run generate updates it),', () => {
  it('are in docs/webhooks.md', async () => {
    const guide = await readFile('docs/webhooks.md', 'utf8')
    expect(cellsOf(guide)).toEqual(cellsOf(renderEventBodies()))
  })

  it('can be chosen in the console', async () => {
    const list = await readFile('apps/console/webhook-events.ts', 'utf8')
    expect(list.match(/(?<=')\w+\.\w+(?=')/g)).toEqual(WEBHOOK_EVENT_TYPES)
  })
})
