import fc from 'fast-check'
import { idFromBytes } from '#libs/domain/ids/typeid.js'
import { object, type EventDeclaration, type EventOf } from './declare.js'

/** The keywords of JSON Schema that declarations use. */
interface Schema {
  type?: string
  enum?: readonly unknown[]
  const?: unknown
  anyOf?: readonly Schema[]
  items?: Schema
  properties?: Readonly<Record<string, Schema>>
  required?: readonly string[]
  pattern?: string
  format?: string
  contentEncoding?: string
  minimum?: number
  maximum?: number
}

/** Values of properties of the data that have a narrower form than their schema says, or should often be equal. */
type Values = Readonly<Record<string, fc.Arbitrary<unknown>>>

/** Any event of the declarations. Ids are few, and numbers and times often the same, so that events meet. */
export function anyEventOf<const Declarations extends Readonly<Record<string, EventDeclaration>>>(
  declarations: Declarations,
  values: Values = {},
): fc.Arbitrary<EventOf<Declarations>> {
  const each = Object.entries(declarations).map(([type, { fields }]) => {
    const { schema, decode } = object(fields)
    return anyData(schema, values).map((data) => ({ type, ...decode(data) }))
  })
  return fc.oneof(...each) as fc.Arbitrary<EventOf<Declarations>>
}

function anyData(schema: Schema, values: Values): fc.Arbitrary<unknown> {
  const { anyOf, items, properties, minimum, maximum } = schema
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum)
  if (schema.const !== undefined) return fc.constant(schema.const)
  if (anyOf !== undefined) return fc.oneof(...anyOf.map((each) => anyData(each, values)))
  if (items !== undefined) return fc.array(anyData(items, values), { maxLength: 3 })
  if (properties !== undefined) {
    const entries = Object.entries(properties)
    const each = entries.map(([name, property]) => [name, values[name] ?? anyData(property, values)] as const)
    return fc.record(Object.fromEntries(each), { requiredKeys: [...(schema.required ?? [])] })
  }
  switch (schema.type) {
    case 'string':
      return anyText(schema)
    case 'boolean':
      return fc.boolean()
    case 'integer': {
      const [min = 0, max = Number.MAX_SAFE_INTEGER] = [minimum, maximum]
      const any = fc.integer({ min, max })
      return fc.oneof(
        { weight: 3, arbitrary: fc.integer({ min, max: min + 4 }) },
        { weight: 1, arbitrary: any },
      )
    }
    case 'number':
      // Negative zero is not encoded as such.
      return fc.double({ min: minimum ?? 0, max: maximum ?? 1e9, noNaN: true }).map((value) => value + 0)
    case 'object':
      // The API rejects a label of that name, since not every store can keep it.
      return fc.dictionary(
        fc.string().filter((name) => name !== '__proto__'),
        fc.string(),
        { maxKeys: 4 },
      )
    case undefined:
      // Bytes of CBOR have no type.
      return anyBytes
    default:
      throw new TypeError(`no values for the type "${schema.type}"`)
  }
}

const anyBytes = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes))

function anyText({ pattern, format, contentEncoding }: Schema): fc.Arbitrary<string> {
  const [, prefix] = /^\^([a-z]+)_/.exec(pattern ?? '') ?? []
  if (prefix !== undefined) {
    return fc.integer({ min: 1, max: 3 }).map((n) => idFromBytes(prefix, Buffer.alloc(16, n)))
  }
  if (pattern !== undefined) return fc.stringMatching(new RegExp(pattern))
  if (format === 'date-time') {
    return fc
      .integer({ min: 0, max: 60 })
      .map((minute) => new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString())
  }
  return contentEncoding === undefined ? fc.string() : anyBytes.map((bytes) => bytes.toString('base64'))
}
