import { Body, Controller, Get, Patch, Query, type Type as Class } from '@nestjs/common'
import { IsIn, IsOptional, IsString, ValidateBy } from 'class-validator'
import Type from 'typebox'
import { IfGiven } from '../http/rules.js'
import { Describe, DescribeBody, type Description, DescribeProperty, Tag } from './describe.js'
import { describeApi } from './document.js'

const Thing = Type.Object({ size: Type.Integer() }, { $id: 'Thing', description: 'A thing.' })

const described = (schema: Description['answer']['schema'] = Thing): Description => ({
  summary: 'Read a thing',
  answer: { description: 'It.', schema },
})

const documentOf = (controller: Class) => describeApi([controller], 'http://127.0.0.1')

describe('the document of a controller', () => {
  it('has the operation, with the rules of its query and body classes', () => {
    class Find {
      @DescribeProperty('Its size.')
      @IsOptional()
      @IsIn(['large', 'small'])
      like?: 'large' | 'small'
    }

    @DescribeBody({ description: 'A change.', example: { name: 'one' } })
    class Change {
      @DescribeProperty('Its name.')
      @IsOptional()
      @IsString()
      name?: string | null

      @DescribeProperty('Its twin.', Thing)
      @IfGiven()
      @ValidateBy({ name: 'isThing', validator: { validate: () => true } })
      twin?: object
    }

    @Controller('things')
    @Tag('Operations')
    class Things {
      @Patch(':keyId')
      @Describe(described())
      change(@Body() _body: Change, @Query() _query: Find) {
        return null
      }
    }

    const { paths, components } = documentOf(Things)
    const operation = paths['/things/{id}']?.patch
    expect(operation?.parameters).toMatchObject([
      { name: 'id', in: 'path', required: true },
      { name: 'like', in: 'query', schema: { type: 'string', enum: ['large', 'small'] } },
    ])
    expect(operation?.requestBody).toEqual({
      required: false,
      content: { 'application/json': { schema: { $ref: '#/components/schemas/Change' } } },
    })
    expect(components.schemas.Change?.properties).toEqual({
      name: { description: 'Its name.', type: ['string', 'null'] },
      twin: { description: 'Its twin.', $ref: '#/components/schemas/Thing' },
    })
    expect(Object.keys(components.schemas)).toEqual(expect.arrayContaining(['Change', 'Problem', 'Thing']))
    expect(operation?.responses['200']).toMatchObject({
      content: { 'application/json': { schema: { $ref: '#/components/schemas/Thing' } } },
    })
  })
})

describe('the document can not be made', () => {
  it('with a handler without a description', () => {
    @Controller()
    @Tag('Operations')
    class Things {
      @Get('things')
      list() {
        return null
      }
    }
    expect(() => documentOf(Things)).toThrow('Things.list has no description')
  })

  it('with a controller without a tag', () => {
    @Controller()
    class Things {
      @Get('things')
      @Describe(described())
      list() {
        return null
      }
    }
    expect(() => documentOf(Things)).toThrow('Things has no tag')
  })

  it('with a parameter without a description', () => {
    class Find {
      @IsString()
      name!: string
    }
    expect(() => documentOf(withQuery(Find))).toThrow('Find.name has no description')
  })

  it('with a rule that has no JSON Schema', () => {
    class Find {
      @DescribeProperty('Its name.')
      @ValidateBy({ name: 'isNice', validator: { validate: () => true } })
      name!: string
    }
    expect(() => documentOf(withQuery(Find))).toThrow('Find.name has the rule isNice')
  })

  it('with a path parameter without a description', () => {
    @Controller('things')
    @Tag('Operations')
    class Things {
      @Get(':thingId')
      @Describe(described())
      get() {
        return null
      }
    }
    expect(() => documentOf(Things)).toThrow('thingId has no description')
  })

  it('with two schemas of the same name', () => {
    @Controller()
    @Tag('Operations')
    class Things {
      @Get('one')
      @Describe(described())
      one() {
        return null
      }

      @Get('other')
      @Describe(described(Type.Object({}, { $id: 'Thing', description: 'Another thing.' })))
      other() {
        return null
      }
    }
    expect(() => documentOf(Things)).toThrow('two schemas have the name Thing')
  })
})

/** A controller whose handler has a query. */
function withQuery(query: Class): Class {
  @Controller('things')
  @Tag('Operations')
  class Things {
    @Get()
    @Describe(described())
    list(_query: unknown) {
      return null
    }
  }
  Reflect.defineMetadata('design:paramtypes', [query], Things.prototype, 'list')
  Query()(Things.prototype, 'list', 0)
  return Things
}
