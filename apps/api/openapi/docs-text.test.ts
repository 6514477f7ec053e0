import { schemaText } from './docs-text.js'

describe('A schema in words', () => {
  it('has the examples of a pattern', () => {
    const schema = { type: 'string', pattern: '^.*$', examples: ['30m', '24h'] }
    expect(schemaText(schema)).toBe('string, such as <code>30m</code>, <code>24h</code>')
  })

  it('lists the properties of an object without a name', () => {
    const properties = { max_messages: { type: 'integer', minimum: 1, maximum: 5 } }
    expect(schemaText({ type: ['object', 'null'], properties })).toBe(
      'object or null with <code>max_messages</code> (integer, 1 to 5)',
    )
  })

  it('has the limits of a string and of the number of pairs', () => {
    expect(schemaText({ type: 'string', minLength: 1, maxLength: 9 })).toBe('string, 1 to 9 characters')
    expect(schemaText({ type: 'object', maxProperties: 16, additionalProperties: { type: 'string' } })).toBe(
      'object of strings, at most 16 pairs',
    )
  })
})
