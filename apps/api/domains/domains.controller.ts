import { Body, Controller, Delete, Get, HttpCode, Param, Patch, Post, Query } from '@nestjs/common'
import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import { type Principal, Caller, RequireScope } from '../access/principal.js'
import { Reply, withLocation } from '../http/headers.js'
import { ListPage, pageOf } from '../http/list-pages.js'
import { Produces } from '../http/media-types.js'
import { Mint, type Minting } from '../idempotency/minting.js'
import { Describe, Tag } from '../openapi/describe.js'
import { ChangeDomain, CreateDomain } from './domain-requests.dto.js'
import { Domain } from './domain-schemas.js'
import { Domains } from './domains.service.js'

/** The domains of the caller's account, in all environments. */
@Controller('v1/domains')
@Tag('Domains')
@RequireScope('admin')
export class DomainsController {
  constructor(private readonly domains: Domains) {}

  @Post()
  @Describe({
    summary: 'Register a domain',
    description:
      'Add the `records` of the answer to the DNS zone of your domain: it is `verified` once they are found. A hosted domain is verified at once.',
    answer: { description: 'The domain.', schema: Domain, headers: ['Location'] },
    problems: ['address-taken', 'quota-exceeded'],
  })
  async createDomain(
    @Caller() principal: Principal,
    @Mint() minting: Minting,
    @Body() body: CreateDomain,
    @Reply() reply: FastifyReply,
  ) {
    return withLocation(reply, '/v1/domains', await this.domains.create(principal, body, minting))
  }

  @Get()
  @Describe({
    summary: 'List domains',
    answer: { description: 'A page of domains.', schema: Type.Array(Domain), headers: ['Link'] },
  })
  async listDomains(@Caller() principal: Principal, @Query() query: ListPage, @Reply() reply: FastifyReply) {
    const page = await pageOf('dom', query, reply, (listQuery) => this.domains.list(principal, listQuery))
    return page.map((domain) => this.domains.show(domain))
  }

  @Get(':domainId')
  @Describe({ summary: 'Read a domain', answer: { description: 'The domain.', schema: Domain } })
  async getDomain(@Caller() principal: Principal, @Param('domainId') domainId: string) {
    return this.domains.show(await this.domains.find(principal, domainId))
  }

  @Patch(':domainId')
  @Describe({ summary: 'Change a domain', answer: { description: 'The domain.', schema: Domain } })
  changeDomain(
    @Caller() principal: Principal,
    @Param('domainId') domainId: string,
    @Body() body: ChangeDomain,
  ) {
    return this.domains.change(principal, domainId, body)
  }

  @Delete(':domainId')
  @Describe({
    summary: 'Delete a domain',
    description: 'Its mail is no longer received. Inboxes and their mail stay.',
    answer: { description: 'The domain before its deletion.', schema: Domain },
  })
  deleteDomain(@Caller() principal: Principal, @Param('domainId') domainId: string) {
    return this.domains.remove(principal, domainId)
  }

  @Post(':domainId/verify')
  @HttpCode(200)
  @Describe({
    summary: 'Check the DNS records of a domain now',
    description: 'A record whose name servers give no clear answer keeps its last status.',
    answer: { description: 'The domain, with the results.', schema: Domain },
  })
  verifyDomain(@Caller() principal: Principal, @Param('domainId') domainId: string) {
    return this.domains.verify(principal, domainId)
  }

  @Get(':domainId/zonefile')
  @Produces('text/dns')
  @Describe({
    summary: 'Read the DNS records of a domain as a zone file',
    description: 'To import at a DNS provider (RFC 1035, section 5).',
    answer: { description: 'The records.', schema: Type.String() },
  })
  getDomainZoneFile(@Caller() principal: Principal, @Param('domainId') domainId: string) {
    return this.domains.zoneFile(principal, domainId)
  }
}
