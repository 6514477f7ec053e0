import Type, { type TSchema } from 'typebox'
import {
  codec,
  object,
  parseTime,
  type AnyFields,
  type Codec,
  type ValuesOf,
} from '#libs/domain/event-sourcing/declare.js'
import { idPattern, type Id } from '#libs/domain/ids/typeid.js'

/*
 * Each resource of the API is declared once, as a list of its properties, like an event (`declare.ts`). Its schema in the
 * OpenAPI document and its JSON are derived from that. In the JSON, names are in snake case.
 */

export interface Resource<Args extends unknown[]> {
  schema: Type.TObject
  /** The resource as JSON. Properties of its values that are not declared are left out. */
  json: (...args: Args) => ResourceJson
}

export interface ResourceJson {
  id: string
  [name: string]: unknown
}

/** `examples` are JSON. `valuesOf` makes the values of the properties from the arguments of `json`. */
export function resource<Fields extends AnyFields, Args extends unknown[] = [values: ValuesOf<Fields>]>(
  name: string,
  about: { description: string; examples?: object[] },
  fields: Fields,
  valuesOf?: (...args: Args) => ValuesOf<Fields>,
): Resource<Args> {
  const { schema, encode } = object(fields, { $id: name, ...about })
  const json = (...args: Args) => encode(valuesOf?.(...args) ?? (args[0] as ValuesOf<Fields>))
  return { schema: schema as Type.TObject, json: json as Resource<Args>['json'] }
}

/** A time, as `Date`. */
export function time(description: string): Codec<Date> {
  return codec(Time(description), (value: Date) => value.toISOString(), parseTime)
}

export function orNull<Value>({ schema, encode, decode }: Codec<Value>, description: string) {
  return codec(
    OrNull(schema, description),
    (value: Value | null) => (value === null ? null : encode(value)),
    (data) => (data === null ? null : decode(data)),
  )
}

// Schemas of properties.

export const Time = (description: string) =>
  Type.String({ format: 'date-time', pattern: '\\.\\d{3}Z$', description })

export const IdOf = <Prefix extends string>(prefix: Prefix, description: string) =>
  Type.Unsafe<Id<Prefix>>(Type.String({ pattern: idPattern(prefix), description }))

/** The author of something: a key, or a member who is signed in or uses a personal key. */
export const KeyOrMember = (description: string) =>
  Type.Unsafe<Id<'key' | 'mem'>>(Type.String({ pattern: idPattern('key', 'mem'), description }))

export const Count = (description: string) => Type.Integer({ minimum: 0, description })

export const Digest = (description: string) => Type.String({ pattern: '^[0-9a-f]{64}$', description })

export const OneOf = <Value extends string>(values: readonly Value[], description?: string) =>
  Type.Unsafe<Value>({ type: 'string', enum: values, ...(description === undefined ? {} : { description }) })

/** Any number of texts, each one of several. */
export const SomeOf = <Value extends string>(values: readonly Value[], description: string) =>
  Type.Unsafe<readonly Value[]>(Type.Array(OneOf(values), { description }))

export const OrNull = <Schema extends TSchema>(schema: Schema, description: string) =>
  Type.Union([schema, Type.Null()], { description })
