"""Every bound, in one place, on by default, each with its reason.

A bound is passed explicitly (`limits: Limits = LIMITS`); nothing else in the package holds a number that bounds input.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    # JSON that a model or a file wrote
    argument_bytes: int = 64 * 1024  # a call is a few hundred bytes; parsing cost stays below a millisecond
    json_depth: int = 32  # no tool of ours nests deeper than 5; the standard parser recurses
    integer_digits: int = 300  # more digits than a double's range; Python's own int() limit is 4,300
    string_bytes: int = 32 * 1024  # one argument
    properties: int = 256  # keys in one object; more is an attack or a mistake
    json_size: int = 16 * 1024**2  # values and characters written as one text; a part shared often multiplies

    # Tool definitions
    schema_bytes: int = 64 * 1024  # of one tool; as much as its arguments may take
    schema_depth: int = 16  # levels of objects and lists; one of arguments takes two, and no tool nests eight
    schema_parts: int = 4_096  # objects and lists once every $ref is written out; twenty $refs can make a million
    problem_steps: int = 16_384  # schema parts times argument values up to which every problem is looked for
    name_chars: int = 64  # what the wire formats allow

    # Arithmetic
    expression_chars: int = 1_000  # the calculator's input
    expression_depth: int = 50  # nested parentheses and signs
    number_digits: int = 100  # digits of an operand, and of a result
    fraction_bits: int = 9_000  # numerator or denominator on the way; 1.0041667**360 fits, a product takes 0.2 ms

    # Calls
    call_chars: int = 4_096  # the text of one inline call before it counts as never closed
    calls_per_run: int = 64  # an answer takes a few; a model that calls for ever is stopped
    call_seconds: float = 10.0  # one call, from the slot to the result
    grace_seconds: float = 0.5  # between the deadline and the death of the child
    result_bytes: int = 1024 * 1024  # kept of one result
    result_chars: int = 16 * 1024  # shown to the model; it also ends up in the context window
    child_memory_bytes: int = 2 * 1024**3  # address space that a child may add
    child_files: int = 64  # open at one time; a tool opens a few
    child_processes: int = 64  # that one tool may have below it; a pool has one for each core, a fork bomb thousands
    child_file_bytes: int = 256 * 1024**2  # one file that a tool writes; a report or a download, no disk full
    warm_children: int = 4  # forked ahead; a burst of so many calls waits for no fork, each holds a few MB
    children: int = 8  # processes of tools at one time; each may add child_memory_bytes
    message_chars: int = 500  # an error's sentence, which the model reads
    id_chars: int = 256  # of a principal, a run or a call; ids are the runtime's and are short
    replays: int = 1_024  # finished calls whose results are kept for a repetition; 64 MB at the very most
    runs: int = 65_536  # runs whose calls and labels are kept in memory; about 10 MB each
    calls_per_turn: int = 16  # that one message of a model may ask for; the others are refused
    attempts: int = 3  # of one call; also crashes after which a call is set aside
    retry_seconds: float = 0.2  # wait before the second attempt, doubled and jittered from then on
    lease_seconds: float = 300.0  # after which a call that another machine runs without a deadline counts as lost

    # Approvals
    approval_seconds: float = 900.0  # a person decides within a quarter of an hour, or is asked again
    pending_approvals: int = 32  # of one principal at one time; more is a flood, and nobody reads it

    # The door for people who decide, over HTTP
    request_bytes: int = 16 * 1024  # of one request's head, and of its body; a decision takes 200 bytes
    request_seconds: float = 10.0  # until a body is here; people are on the same machine or behind a proxy
    connections: int = 64  # at one time; a handful of people with a page each

    # The server for programs, over HTTP
    chat_bytes: int = 8 * 1024**2  # of one request's body; a long conversation with its tools, no pictures
    chat_depth: int = 64  # levels of objects and lists in it; a tool's schema begins at the sixth
    chat_seconds: float = 60.0  # until a body is here; 8 MB over a slow line
    chat_connections: int = 1_024  # at one time; a hundred MB when each asks for a reply
    replies: int = 8  # made at one time; a model on a CPU is no faster with more
    waiting_replies: int = 64  # that wait for a place; whoever comes later is told to come back
    waiting_seconds: float = 30.0  # for a place; a client would rather try another machine by then
    reply_seconds: float = 600.0  # for one reply, waiting not counted; what official clients wait at most
    chat_messages: int = 10_000  # of one conversation; each is named and looked for, and no model reads so many
    chat_tools: int = 1_024  # of one request; a catalogue shows eight of so many
    pieces_ahead: int = 64  # of a reply that its reader has not taken yet; then the model waits for the reader
    told_bytes: int = 2_000  # of a header that says what is not masked; servers in front take four to eight thousand
    ping_seconds: float = 10.0  # without a piece, after which a stream says that it lives; proxies give up after 30
    stalled_seconds: float = 30.0  # that a reader takes nothing, after which it counts as gone
    turns_per_reply: int = 16  # that a model with tools of the server's takes until its answer
    paused_runs: int = 1_024  # that wait for a person, and go on when they are asked again; some 200 bytes each
    keys: int = 1_000  # in a file of keys; each is compared with what a request brings, in half a millisecond

    # The audit log
    audit_chars: int = 4_096  # kept of the arguments and of a traceback
    audit_batch: int = 256  # lines about calls without effect that wait for one commit

    # Confined helpers: files, addresses and databases that a model's words choose
    path_bytes: int = 1_024  # of a path below a root; what tools keep is a few folders deep
    file_bytes: int = 8 * 1024 * 1024  # one file, read or written, which a tool holds whole
    folder_names: int = 10_000  # of one listing; more no model reads
    url_chars: int = 8_192  # what servers are asked to accept (RFC 9110, 4.1)
    redirects: int = 5  # a page that moved and changed to https takes two
    fetch_seconds: float = 8.0  # all hops together; below call_seconds, so that the tool can still answer
    response_bytes: int = 4 * 1024 * 1024  # of a body, decoded; pages are long before a tool cuts them
    sql_bytes: int = 16 * 1024  # of one statement, its bound values not counted
    query_rows: int = 1_000  # of one answer; more belongs into the query, as count() or LIMIT
    query_bytes: int = 1024 * 1024  # of one answer; what is kept of a result
    query_value_bytes: int = 128 * 1024  # of any value on the way; instr() on two such takes a tenth of a second
    query_steps: int = 100_000_000  # of SQLite's machine; a second or two, ten million rows read through
    query_seconds: float = 5.0  # of one query; below call_seconds
    like_chars: int = 100  # of a LIKE or GLOB pattern, whose cost is a power of its wildcards

    # OpenAPI descriptions
    openapi_bytes: int = 4 * 1024 * 1024  # of a description; more is a whole cloud's, of which a part will do
    openapi_depth: int = 64  # levels of objects and lists; an operation's schema begins at the eighth
    openapi_tools: int = 256  # of one description; a model chooses among dozens
    openapi_text_chars: int = 1_000  # of a description of a tool or an argument; about what chat APIs take
    decodings: int = 8  # of a path's value, by servers and proxies on the way; whoever needs more hides something
    error_line_chars: int = 200  # of what a server says of a failure

    # Tools of MCP servers, and tools served to MCP clients
    mcp_servers: int = 32  # of one file; each is a process or a connection
    mcp_tools: int = 256  # of one server, as of an OpenAPI description
    mcp_pages: int = 64  # of a listing; servers put fifty tools on a page
    mcp_bytes: int = 4 * 1024 * 1024  # of one message; a listing of so many tools, or a picture
    mcp_parts: int = 1_000  # of a result's content; servers send a few
    mcp_values: int = 20_000  # of a message beside listings and results; one has a few dozen
    mcp_unasked: int = 1_000  # messages in a row that answer nothing; a long call tells its progress a hundred times
    mcp_start_seconds: float = 30.0  # until a server has listed its tools; some are fetched first, by npx or uvx
    mcp_call_seconds: float = 8.0  # of one call, unless the server is given more; below call_seconds
    mcp_close_seconds: float = 2.0  # between the end of a server's input and its death
    mcp_silences: int = 2  # calls in a row without an answer, after which the next one meets a new server

    # Corpora
    document_bytes: int = 8 * 1024 * 1024  # one document; a longer line is a broken file
    parquet_batch_bytes: int = 64 * 1024 * 1024  # of rows in memory; a row group of more is read row by row
    parquet_ratio: int = 1_000  # from a column in the file to more than that; text packs to a hundredth at best
    label_chars: int = 4_096  # of a document's id, address or language, which every passage repeats; paths end there
    passage_tokens: int = 256  # context that one proposal sees; prompt and two copies fit small models
    taught_result_tokens: int = 512  # of a result that teaches; two passages, and half of what GPT-2 reads
    cached_results: int = 100_000  # of pure tools, in one worker; some 200 bytes each
    counted_documents: int = 100_000  # for an estimate before a run; reading so many takes seconds
    woven_tokens: int = 1_024  # of a passage with its earlier calls; the prompt and the text fit beside it into 2,048
    rounds: int = 8  # of annotation; a call that stands on a call that stands on a call takes three

    # Search
    shard_passages: int = 16_384  # of an index made in one go; a kill loses them, and they take some 100 MB meanwhile
    passage_chars: int = 4_000  # of one passage; a hundred words take 600, a line of data without a space millions
    title_chars: int = 200  # of a passage's title
    word_chars: int = 64  # of a word that can be searched for; longer ones are data, and each fills the vocabulary
    search_chars: int = 1_000  # of a query; each of its words is looked up, and a question has a hundred characters
    search_depth: int = 10_000  # passages of one ranking that can be seen; a model reads the first few
    search_hits: int = 20  # of one page; two or three are what a small model can use
    snippet_words: int = 200  # of one hit that a page shows; a passage has a hundred
    reranked: int = 50  # passages that a re-ranker scores for one search; a second or two for a small encoder

    # Answers to questions
    question_chars: int = 500  # of one question; a hundred is usual, and it is read once beside every passage
    read_passages: int = 10  # of one question; a small model takes half a second for each
    read_chars: int = 1_200  # of one passage; a hundred words take 600, a line of data takes all there are
    answer_chars: int = 100  # of an answer; a name or a date, and more is a passage
    answer_tokens: int = 16  # of an answer that a model writes or chooses
    answer_steps: int = 64  # looks of a language model at how an answer may go on; ten find most answers

    # Translation
    translate_chars: int = 4_000  # of one text; a page, and the passage that a call stands in is shorter
    translate_seconds: float = 8.0  # of one text; below call_seconds, so that the tool can still answer
    translator_seconds: float = 30.0  # until Apertium's programs for a pair are there; 0.3 where nobody else computes
    translated_bytes: int = 512 * 1024  # of one text between Apertium's programs; their marks make twenty times of it
    translated_tokens: int = 512  # of one text that a neural model writes; such models are trained on sentences
    language_chars: int = 1_000  # read to tell a language; a sentence is enough
    language_letters: int = 4  # without which no language is told; half of all single words are told wrong as it is

    # Settings and training
    settings_bytes: int = 64 * 1024  # of a settings file; every setting there is takes some 2 KB
    trained_texts: int = 10_000_000  # steps times batch of one training, whose order is held; the paper's is 256,000

    threads: int = 1_024  # of one process; more than machines have cores, and the system's own bound ends the process

    # Conversations over HTTP
    stop_strings: int = 4  # of one request; what the chat APIs take, and each is looked for in every piece of text
    stop_chars: int = 1_000  # of one of them; what is held back while it may still come is compared at every piece
    temperature: float = 2.0  # what the chat APIs take; beyond it, text is noise
    upstream_tokens: int = 4_096  # of an answer where an API must be told and nobody said; a long one, and tools fit
    run_tokens: int = 500_000  # that an agent's turns read and write for one question; sixteen long prompts
    upstream_seconds: float = 600.0  # for a whole answer of a server; what official clients wait at most
    silent_seconds: float = 120.0  # of a server before its next piece; a long prompt is read in less
    retry_after_seconds: float = 30.0  # that a server may ask to wait; who is told of more asks again by themselves
    upstream_bytes: int = 64 * 1024**2  # of a whole answer; some 300 of each token of a stream
    upstream_calls: int = 1_024  # of one turn; sixteen of them run, each is looked for among the others
    event_bytes: int = 1024 * 1024  # of one server-sent event; a whole answer in one piece fits

    # Catalogues of tools
    shown_tools: int = 8  # of many, for one message; a small model chooses among so few, and a tool takes 150 tokens
    chosen_tools: int = 64  # of one conversation, after which its messages bring no more; looking for them still does
    find_turns: int = 3  # that a model looks for tools in one reply; then it makes do with those it has
    ranked_tools: int = 100  # of one ranking that are kept; nobody shows more
    choosing_chars: int = 8_000  # of a message by which tools are chosen, half from each end; a page and a question
    kept_choices: int = 1_024  # rankings that are remembered; a conversation asks again for those of all its messages
    kept_catalogues: int = 16  # of requests' own tools; clients send the same ones again, each takes a megabyte

    # Strict decoding
    grammar_bytes: int = 1024 * 1024  # of one grammar; sixty large tools take 100 KB
    grammar_symbols: int = 50_000  # of its rules once schemas are written out; a tool of BFCL takes some hundred
    grammar_fuel: int = 1_000_000  # of the engine for one grammar; some 20 ms
    grammar_tries: int = 256  # places of one schema tried one by one where the whole is refused; a millisecond each
    request_tries: int = 512  # of all schemas of a request; a second, after which a refused one is left open whole
    alone_grammars: int = 64  # schemas compiled one by one where they are refused together; 20 ms each at most
    joined_patterns: int = 8  # that one value must fit all together; the engine takes seconds for twenty
    masked_steps: int = 60_000  # hundredths that a step divides, or it is not masked; a million takes minutes
    grammars: int = 64  # compiled ones that are kept; a server meets few sets of tools, each takes a few MB
    mask_fuel: int = 200_000  # of the engine for one mask; some 15 ms
    mask_items: int = 20_000  # ways that one place of a grammar may go on; an optional property is two

    # Decoding
    sampled_tokens: int = 256  # of one proposed call; every sample of every position may become as long
    generated_tokens: int = 128  # of one answer, unless the caller says how many; ten seconds on a CPU

    # Chat templates, which are programs that came with a model
    template_chars: int = (
        64 * 1024
    )  # of its text; the longest public ones have 20 KB, and Jinja takes 3 KB for each character
    template_work: int = 128 * 1024**2  # characters that one rendering makes on its way; thirty copies of a long prompt
    template_value: int = 16 * 1024**2  # characters of one value once it is written out; a conversation has half of it
    template_seconds: float = 5.0  # of one rendering; a long conversation takes a few hundredths
    prompt_chars: int = 4 * 1024**2  # of a rendered conversation; a million tokens, more than models read

    # Many conversations at once
    pooled_tokens: int = 32_768  # held of all sessions of a model; 1.5 GB for SmolLM2, 46 KB a token
    prefill_tokens: int = 512  # of a prompt that one forward pass reads; others that write wait a second for it
    kept_contexts: int = 32  # of sessions that are over, so that a conversation which goes on is not read again


LIMITS = Limits()
