import Type from 'typebox'
import { idPattern, type Id } from '#libs/domain/ids/typeid.js'

/*
 * Each event is declared once, as a list of its properties. The TypeScript type, the JSON Schema of the data
 * (docs/events.md), and the encoding and decoding are derived from that. In the data, names are in snake case.
 */

export interface EventDeclaration<Fields = AnyFields> {
  /** The type on the log, without the prefix that all types have. */
  name: string
  /** Of the data's schema. Data of this version and all older ones can be decoded. */
  version: number
  contentType: 'application/json' | 'application/cbor'
  /** Whether it ends or removes something. Such an event is also recorded when the disk is nearly full. */
  isRemoval: boolean
  fields: Fields
}

export function event<Fields extends AnyFields>(
  name: string,
  fields: Fields,
  options: Partial<Pick<EventDeclaration, 'version' | 'contentType' | 'isRemoval'>> = {},
): EventDeclaration<Fields> {
  return { name, version: 1, contentType: 'application/json', isRemoval: false, fields, ...options }
}

/** The declared event of that name; without a name, the union of all. */
export type EventOf<Declarations, Name extends keyof Declarations = keyof Declarations> = {
  [N in Name]: Declarations[N] extends EventDeclaration<infer Fields> ? { type: N } & ValuesOf<Fields> : never
}[Name]

/** How a value is represented in an event's data. */
export interface Codec<Value> {
  schema: Type.TSchema
  encode: (value: Value) => unknown
  /** `data` has been validated against the schema. */
  decode: (data: unknown) => Value
}

/** A property of an event that is not represented by exactly one property of the data. */
export interface Field<Value> {
  /** `name` is the name of the event's property in snake case. */
  at(name: string): Property<Value>
}

/** How a property of an event is represented: by one property of the data, none or several. */
interface Property<Value> {
  schemas: Type.TProperties
  encode: (value: Value, data: Data) => void
  decode: (data: Data) => Value
}

type Data = Record<string, unknown>

// For values of any type. A `Codec<unknown>` would have to encode every value.
interface AnyCodec {
  schema: Type.TSchema
  encode: (value: never) => unknown
  decode: (data: unknown) => unknown
}
interface AnyProperty {
  schemas: Type.TProperties
  encode: (value: never, data: Data) => void
  decode: (data: Data) => unknown
}
/** A schema stands for `plain` of it: its values represent themselves. */
type AnySchema = { readonly '~kind': string } | { readonly '~unsafe': unknown }
type AnyField = AnySchema | AnyCodec | { at(name: string): AnyProperty }
export type AnyFields = Readonly<Record<string, AnyField>>

export type ValueOf<Declared> = Declared extends Codec<infer Value> | Field<infer Value>
  ? Value
  : Declared extends AnySchema
    ? Type.Static<Declared>
    : never
export type ValuesOf<Fields> = { -readonly [Name in keyof Fields]: ValueOf<Fields[Name]> }

/** Represented by itself. */
export function plain<const Schema extends Type.TSchema>(schema: Schema): Codec<Type.Static<Schema>> {
  return { schema, encode: (value) => value, decode: (data) => data as Type.Static<Schema> }
}

/** Encoded and decoded by functions. */
export function codec<const Schema extends Type.TSchema, Value>(
  schema: Schema,
  encode: (value: Value) => Type.Static<Schema>,
  decode: (data: Type.Static<Schema>) => Value,
): Codec<Value> {
  return { schema, encode, decode: (data) => decode(data as Type.Static<Schema>) }
}

export const text = plain(Type.String())
export const boolean = plain(Type.Boolean())
/** Integers that every JSON parser reads exactly (RFC 8259, section 6). */
export const count = plain(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }))
export const milliseconds = plain(Type.Number({ minimum: 0 }))
/** In hex. */
export const sha256 = plain(Type.String({ pattern: '^[0-9a-f]{64}$' }))
export const labels: Codec<Readonly<Record<string, string>>> = plain(
  Type.Record(Type.String(), Type.String()),
)
export const time = codec(
  Type.String({ format: 'date-time' }),
  (value: Date) => value.toISOString(),
  parseTime,
)

/** Sealed bytes in JSON: base64 (RFC 4648, section 4). */
export const sealedText = codec(
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

/** An id with one of the prefixes. */
export function id<Prefix extends string>(...prefixes: [Prefix, ...Prefix[]]): Codec<Id<Prefix>> {
  return plain(Type.Unsafe<Id<Prefix>>(Type.String({ pattern: idPattern(...prefixes) })))
}

export function oneOf<const Texts extends readonly string[]>(texts: Texts): Codec<Texts[number]> {
  return plain(Type.Unsafe<Texts[number]>(Type.Enum([...texts])))
}

export function list<Value>(
  { schema, encode, decode }: Codec<Value>,
  options: Type.TArrayOptions = {},
): Codec<readonly Value[]> {
  return codec(
    Type.Array(schema, options),
    (values) => values.map((value) => encode(value)),
    (data) => data.map((value) => decode(value)),
  )
}

export function object<Fields extends AnyFields>(
  fields: Fields,
  options: Type.TObjectOptions = {},
): Codec<ValuesOf<Fields>> {
  const { schemas, encode, decode } = propertiesOf(fields)
  return {
    schema: Type.Object(schemas, options),
    encode(value) {
      const data: Data = {}
      encode(value, data)
      return data
    },
    decode: (data) => decode(data as Data),
  }
}

/** An object in which any property may be absent. */
export function partial<Fields extends AnyFields>(fields: Fields): Codec<Partial<ValuesOf<Fields>>> {
  const entries = Object.entries(fields)
  const each = entries.map(([name, field]) => [name, optional(field as Codec<unknown>, undefined)] as const)
  return object(Object.fromEntries(each)) as Codec<Partial<ValuesOf<Fields>>>
}

/**
 * A discriminated union: the value of `discriminator` selects the other properties. `written` has the values that are
 * different in the data.
 */
export function union<Name extends string, Variants extends Readonly<Record<string, AnyFields>>>(
  discriminator: Name,
  variants: Variants,
  written: { readonly [V in keyof Variants]?: string } = {},
): Codec<{ [V in keyof Variants]: { [N in Name]: V } & ValuesOf<Variants[V]> }[keyof Variants]> {
  const codecs = Object.entries(variants).map(([variant, fields]) => {
    const name = written[variant] ?? variant
    const named = codec(
      Type.Literal(name),
      () => name,
      () => variant,
    )
    return { variant, name, ...object({ [discriminator]: named, ...fields }) }
  })
  const codecOf = (of: 'variant' | 'name', value: unknown): AnyCodec => {
    const wanted = (value as Data)[discriminator]
    const found = codecs.find((each) => each[of] === wanted)
    if (found === undefined) throw new TypeError(`unknown ${discriminator} "${String(wanted)}"`)
    return found
  }
  return {
    schema: Type.Union(codecs.map(({ schema }) => schema)),
    encode: (value) => codecOf('variant', value).encode(value as never),
    decode: (data) => codecOf('name', data).decode(data) as never,
  }
}

/** A property with a different name in the data. */
export function named<Declared extends AnyField>(name: string, value: Declared): Field<ValueOf<Declared>> {
  return { at: () => propertyAt(name, value) }
}

/** A property that is left out of the data if its value is `absent`. */
export function optional<Declared extends AnyField, const Absent>(
  value: Declared,
  absent: Absent,
): Field<ValueOf<Declared> | Absent> {
  return {
    at(name) {
      const { schemas, encode, decode } = propertyAt(name, value)
      const names = Object.keys(schemas)
      return {
        schemas: Object.fromEntries(names.map((each) => [each, Type.Optional(schemas[each] ?? {})])),
        encode(it, data) {
          if (it !== absent) encode(it as ValueOf<Declared>, data)
        },
        decode: (data) => (names.some((each) => data[each] === undefined) ? absent : decode(data)),
      }
    },
  }
}

/** A property that older data lacks: it is decoded as `before`. */
export function added<Value>(value: Codec<Value>, before: Value): Field<Value> {
  return {
    at(name) {
      const { schemas, encode, decode } = optional(value, undefined).at(name)
      return { schemas, encode, decode: (data) => decode(data) ?? before }
    },
  }
}

/** An object whose properties are properties of the data itself. */
export function flat<Fields extends AnyFields>(fields: Fields): Field<ValuesOf<Fields>> {
  return { at: () => propertiesOf(fields) }
}

/** A property that always has this value and is not in the data. */
export function constant<const Value>(value: Value): Field<Value> {
  return { at: () => ({ schemas: {}, encode: () => undefined, decode: () => value }) }
}

function propertyAt<Declared extends AnyField>(name: string, value: Declared): Property<ValueOf<Declared>>
function propertyAt(name: string, value: AnyField): AnyProperty {
  if ('at' in value) return value.at(name)
  const { schema, encode, decode }: AnyCodec = 'encode' in value ? value : plain(value)
  return {
    schemas: { [name]: schema },
    encode(it: never, data: Data) {
      data[name] = encode(it)
    },
    decode: (data: Data) => decode(data[name]),
  }
}

function propertiesOf<Fields extends AnyFields>(fields: Fields): Property<ValuesOf<Fields>> {
  const properties = Object.entries(fields).map(([name, field]) => ({
    name,
    property: propertyAt(snakeCase(name), field as Codec<unknown>),
  }))
  return {
    schemas: Object.assign({}, ...properties.map(({ property }) => property.schemas)) as Type.TProperties,
    encode(values, data) {
      for (const { name, property } of properties) property.encode((values as Data)[name], data)
    },
    decode(data) {
      const values: Data = {}
      for (const { name, property } of properties) {
        const value = property.decode(data)
        if (value !== undefined) values[name] = value
      }
      return values as ValuesOf<Fields>
    },
  }
}

export function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/** Parses RFC 3339 in UTC, to the millisecond. */
export function parseTime(text: string | undefined): Date {
  const time = new Date(text ?? '')
  if (Number.isNaN(time.getTime())) throw new TypeError(`not a time: "${text ?? ''}"`)
  return time
}
