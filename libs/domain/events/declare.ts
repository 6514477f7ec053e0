import Type from 'typebox'
import { idPattern, type Id } from '#libs/domain/ids/typeid.js'

/*
 * Each event is declared once, as a list of its properties. Its type, the JSON Schema of its data (docs/events.md), and
 * how it is written to the log and read from it follow from that. In the data, a property has its name in snake case.
 */

/** An event as it is declared. */
export interface EventDeclaration<Fields = AnyFields> {
  /** On the log, without the prefix that every type has. */
  name: string
  /** Of the data. The declaration reads data of this version and of every older one. */
  version: number
  contentType: 'application/json' | 'application/cbor'
  fields: Fields
}

export function event<Fields extends AnyFields>(
  name: string,
  fields: Fields,
  options: Partial<Pick<EventDeclaration, 'version' | 'contentType'>> = {},
): EventDeclaration<Fields> {
  return { name, version: 1, contentType: 'application/json', fields, ...options }
}

/** One of the declared events, by its name; without a name any of them. */
export type EventOf<Declarations, Name extends keyof Declarations = keyof Declarations> = {
  [N in Name]: Declarations[N] extends EventDeclaration<infer Fields> ? { type: N } & ValuesOf<Fields> : never
}[Name]

/** How a value stands in an event's data. */
export interface Kind<Value> {
  schema: Type.TSchema
  write: (value: Value) => unknown
  /** `data` fits the schema. */
  read: (data: unknown) => Value
}

/** A property of an event, if it is not simply one property of the data. */
export interface Field<Value> {
  /** `name` is that of the event's property in snake case. */
  at(name: string): Property<Value>
}

/** What a property of an event is in the data: one property, none or several. */
interface Property<Value> {
  schemas: Type.TProperties
  write: (value: Value, data: Data) => void
  read: (data: Data) => Value
}

type Data = Record<string, unknown>

// Of any value. A `Kind<unknown>` would have to write every value.
interface AnyKind {
  schema: Type.TSchema
  write: (value: never) => unknown
  read: (data: unknown) => unknown
}
interface AnyProperty {
  schemas: Type.TProperties
  write: (value: never, data: Data) => void
  read: (data: Data) => unknown
}
export type AnyFields = Readonly<Record<string, AnyKind | { at(name: string): AnyProperty }>>

export type ValueOf<Declared> = Declared extends Kind<infer Value> | Field<infer Value> ? Value : never
export type ValuesOf<Fields> = { -readonly [Name in keyof Fields]: ValueOf<Fields[Name]> }

/** Written as it is. */
export function plain<const Schema extends Type.TSchema>(schema: Schema): Kind<Type.Static<Schema>> {
  return { schema, write: (value) => value, read: (data) => data as Type.Static<Schema> }
}

/** Written and read by functions. */
export function kind<const Schema extends Type.TSchema, Value>(
  schema: Schema,
  write: (value: Value) => Type.Static<Schema>,
  read: (data: Type.Static<Schema>) => Value,
): Kind<Value> {
  return { schema, write, read: (data) => read(data as Type.Static<Schema>) }
}

export const text = plain(Type.String())
export const boolean = plain(Type.Boolean())
/** As far as every reader of JSON has integers exactly (RFC 8259, section 6). */
export const count = plain(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }))
export const milliseconds = plain(Type.Number({ minimum: 0 }))
/** Hex. */
export const sha256 = plain(Type.String({ pattern: '^[0-9a-f]{64}$' }))
export const labels: Kind<Readonly<Record<string, string>>> = plain(Type.Record(Type.String(), Type.String()))
export const time = kind(Type.String({ format: 'date-time' }), (value: Date) => value.toISOString(), readTime)

/** Sealed bytes in JSON: base64 (RFC 4648, section 4). */
export const sealedText = kind(
  Type.String({ contentEncoding: 'base64' }),
  (value: Uint8Array) => Buffer.from(value).toString('base64'),
  (data): Uint8Array => Buffer.from(data, 'base64'),
)

/** Sealed bytes in CBOR: a byte string. */
export const sealedBytes = plain(
  Type.Refine(
    Type.Unsafe<Uint8Array>({ description: 'a byte string of CBOR (RFC 8949, major type 2)' }),
    (value) => value instanceof Uint8Array,
  ),
)

export function id<Prefix extends string>(prefix: Prefix): Kind<Id<Prefix>> {
  return plain(Type.Unsafe<Id<Prefix>>(Type.String({ pattern: idPattern(prefix) })))
}

export function oneOf<const Texts extends readonly string[]>(texts: Texts): Kind<Texts[number]> {
  return plain(Type.Unsafe<Texts[number]>(Type.Enum([...texts])))
}

export function list<Value>({ schema, write, read }: Kind<Value>): Kind<readonly Value[]> {
  return kind(
    Type.Array(schema),
    (values) => values.map((value) => write(value)),
    (data) => data.map((value) => read(value)),
  )
}

export function object<Fields extends AnyFields>(fields: Fields): Kind<ValuesOf<Fields>> {
  const { schemas, write, read } = propertiesOf(fields)
  return {
    schema: Type.Object(schemas),
    write(value) {
      const data: Data = {}
      write(value, data)
      return data
    },
    read: (data) => read(data as Data),
  }
}

/** Objects in which any property may be absent. */
export function partial<Fields extends AnyFields>(fields: Fields): Kind<Partial<ValuesOf<Fields>>> {
  const entries = Object.entries(fields)
  const each = entries.map(([name, field]) => [name, optional(field as Kind<unknown>, undefined)] as const)
  return object(Object.fromEntries(each)) as Kind<Partial<ValuesOf<Fields>>>
}

/** Objects whose `discriminator` says which properties they have beside it. */
export function union<Name extends string, Variants extends Readonly<Record<string, AnyFields>>>(
  discriminator: Name,
  variants: Variants,
): Kind<{ [V in keyof Variants]: { [N in Name]: V } & ValuesOf<Variants[V]> }[keyof Variants]> {
  const kinds = new Map<unknown, AnyKind>(
    Object.entries(variants).map(([variant, fields]) => [
      variant,
      object({ [discriminator]: plain(Type.Literal(variant)), ...fields }),
    ]),
  )
  const kindOf = (value: unknown): AnyKind => {
    const variant = (value as Data)[discriminator]
    const found = kinds.get(variant)
    if (found === undefined) throw new TypeError(`unknown ${discriminator} "${String(variant)}"`)
    return found
  }
  return {
    schema: Type.Union([...kinds.values()].map(({ schema }) => schema)),
    write: (value) => kindOf(value).write(value as never),
    read: (data) => kindOf(data).read(data) as never,
  }
}

/** A property that has another name in the data. */
export function named<Value>(name: string, value: Kind<Value> | Field<Value>): Field<Value> {
  return { at: () => propertyAt(name, value) }
}

/** A property that the data lacks if its value is `absent`. */
export function optional<Value, const Absent>(
  value: Kind<Value> | Field<Value>,
  absent: Absent,
): Field<Value | Absent> {
  return {
    at(name) {
      const { schemas, write, read } = propertyAt(name, value)
      const names = Object.keys(schemas)
      return {
        schemas: Object.fromEntries(names.map((each) => [each, Type.Optional(schemas[each] ?? {})])),
        write(it, data) {
          if (it !== absent) write(it as Value, data)
        },
        read: (data) => (names.some((each) => data[each] === undefined) ? absent : read(data)),
      }
    },
  }
}

/** A property that older data lacks: it then has the value `before`. */
export function added<Value>(value: Kind<Value>, before: Value): Field<Value> {
  return {
    at(name) {
      const { schemas, write, read } = optional(value, undefined).at(name)
      return { schemas, write, read: (data) => read(data) ?? before }
    },
  }
}

/** A property whose own properties stand among those of the data. */
export function flat<Fields extends AnyFields>(fields: Fields): Field<ValuesOf<Fields>> {
  return { at: () => propertiesOf(fields) }
}

/** A property of the event that always has this value, and is not in the data. */
export function constant<const Value>(value: Value): Field<Value> {
  return { at: () => ({ schemas: {}, write: () => undefined, read: () => value }) }
}

function propertyAt<Value>(name: string, value: Kind<Value> | Field<Value>): Property<Value> {
  if ('at' in value) return value.at(name)
  const { schema, write, read } = value
  return {
    schemas: { [name]: schema },
    write(it, data) {
      data[name] = write(it)
    },
    read: (data) => read(data[name]),
  }
}

function propertiesOf<Fields extends AnyFields>(fields: Fields): Property<ValuesOf<Fields>> {
  const properties = Object.entries(fields).map(([name, field]) => ({
    name,
    property: propertyAt(snakeCase(name), field as Kind<unknown>),
  }))
  return {
    schemas: Object.assign({}, ...properties.map(({ property }) => property.schemas)) as Type.TProperties,
    write(values, data) {
      for (const { name, property } of properties) property.write((values as Data)[name], data)
    },
    read(data) {
      const values: Data = {}
      for (const { name, property } of properties) {
        const value = property.read(data)
        if (value !== undefined) values[name] = value
      }
      return values as ValuesOf<Fields>
    },
  }
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/** RFC 3339 in UTC, to the millisecond. */
export function readTime(written: string | undefined): Date {
  const time = new Date(written ?? '')
  if (Number.isNaN(time.getTime())) throw new TypeError(`not a time: "${written ?? ''}"`)
  return time
}

/** What a command leads to: events, or a refusal; no event if everything already is as the command wants it. */
export type Decision<Event, Refusal> = { events: Event[]; refusal: null } | { events: []; refusal: Refusal }

export function accept<Event>(...events: Event[]): { events: Event[]; refusal: null } {
  return { events, refusal: null }
}

export function refuse<const Refusal>(refusal: Refusal): { events: []; refusal: Refusal } {
  return { events: [], refusal }
}
