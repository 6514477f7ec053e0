// Writes the part of docs/events.md that follows from the code: every event's schema, between the two marks.
import { readFileSync, writeFileSync } from 'node:fs'
import { renderEventSchemas } from '#libs/event-log/event-schemas.js'

const PATH = 'docs/events.md'
const BEGIN = '<!-- begin: npm run docs:events -->'
const END = '<!-- end -->'

const text = readFileSync(PATH, 'utf8')
const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)]
if (begin < 0 || end < begin) throw new Error(`${PATH} lacks its marks: ${BEGIN} and ${END}`)
const schemas = renderEventSchemas()
writeFileSync(PATH, `${text.slice(0, begin + BEGIN.length)}\n\n${schemas}\n${text.slice(end)}`)
