import type { Type as Class } from '@nestjs/common'
import { Reflector } from '@nestjs/core'
import Type, { type TSchema } from 'typebox'
import { idPattern } from '#libs/domain/ids/typeid.js'
import type { RequestHeader, ResponseHeader } from '../http/headers.js'
import type { ProblemCode } from '../http/problems.js'

export const TAGS = {
  Inboxes: 'Addresses for a while: made, listed, read, deleted.',
  Messages: 'What has arrived in an inbox.',
  Webhooks: 'Where events are sent to as they happen.',
  Accounts: 'Whom keys and inboxes belong to.',
  Keys: 'What requests are made with.',
  Usage: 'What keys were used for.',
  Operations: 'For those who run Mayfly, and for this document. No key is needed.',
} as const

/** An operation, beyond what its route, its classes and its scopes say. */
export interface Description {
  /** Of a handler with two families of paths, it contains `Inbox` or `Inboxes`; the other family's says `Email`. */
  id: string
  summary: string
  /** Markdown of paragraphs and `code`. */
  description?: string
  /** The answer to a request that succeeded. */
  answer: Answer
  /** The problems that it may answer, beyond those of every operation of its kind. */
  problems?: readonly ProblemCode[]
  /** The headers that it reads, beyond those of every operation of its kind. */
  takes?: readonly RequestHeader[]
}

export interface Answer {
  description: string
  /** Of a JSON body; otherwise of the text, in the media type that the handler produces. */
  schema: TSchema
  headers?: readonly ResponseHeader[]
}

/** The body of a request, beyond its properties. The document names its schema after the class. */
export interface BodyDescription {
  description: string
  /** A request that does something useful. */
  example: object
  minProperties?: number
  /** Variants that exclude each other, by the names of their schemas: the properties that each one requires. */
  variants?: Readonly<Record<string, { description: string; required: readonly string[] }>>
}

/** A property of a body, or a parameter of a query. */
export interface PropertyDescription {
  description: string
  /** What class-validator's rules for it don't say in JSON Schema. */
  schema: object
}

/** Describes a handler in the OpenAPI document. Every handler must have it. */
export const Describe = Reflector.createDecorator<Description>()

/** The tag of a controller's operations. Every controller must have one. */
export const Tag = Reflector.createDecorator<keyof typeof TAGS>()

/** Describes the class of a body. */
export const DescribeBody = Reflector.createDecorator<BodyDescription>()

const PROPERTY = Symbol('property')

/** Describes a property of a body, or a parameter of a query; `schema` adds to its rules. */
export function DescribeProperty(description: string, schema: object = {}): PropertyDecorator {
  return Reflect.metadata(PROPERTY, { description, schema } satisfies PropertyDescription)
}

export function descriptionOf(metatype: Class, property: string): PropertyDescription | undefined {
  return Reflect.getMetadata(PROPERTY, metatype.prototype as object, property) as
    PropertyDescription | undefined
}

// The small types that answers are made of.

export const Time = (description: string) =>
  Type.String({ format: 'date-time', pattern: '\\.\\d{3}Z$', description })

export const IdOf = (prefix: string, description: string) =>
  Type.String({ pattern: idPattern(prefix), description })

export const Count = (description: string) => Type.Integer({ minimum: 0, description })

export const Digest = (description: string) => Type.String({ pattern: '^[0-9a-f]{64}$', description })

/** One of some texts. */
export const OneOf = <Value extends string>(values: readonly Value[], description?: string) =>
  Type.Unsafe<Value>({ type: 'string', enum: values, ...(description === undefined ? {} : { description }) })

export const OrNull = <Schema extends TSchema>(schema: Schema, description: string) =>
  Type.Union([schema, Type.Null()], { description })

/** Content that is not text: generated clients keep its bytes. */
export const Bytes = Type.String({ format: 'binary' })
