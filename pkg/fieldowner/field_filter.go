package fieldowner

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// FieldFilter is a summary of the fields that a manager owns, small enough to be kept for every object: a Bloom filter over
// the paths of the fields of the upper levels. It reports with certainty that a field is not owned.
type FieldFilter [4]uint64

// everything is the filter of what could not be read.
var everything = FieldFilter{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}

// filterDepth is how deep a filter goes. Nearly all preserved fields are so high up, and the fewer paths there are,
// the fewer of them are mistaken for others.
const filterDepth = 2

// whole marks, in a path, a field that is owned as a whole.
const whole = "\x00"

// FieldFilterOf returns the filter of the fields of a managedFields entry (FieldsV1).
func FieldFilterOf(fields []byte) FieldFilter {
	var filter FieldFilter
	readable := walk(&scanner{rest: string(fields)}, nil, func(path Pattern, isWhole bool) {
		if len(path) <= filterDepth {
			filter.add(path, "")
			if isWhole {
				filter.add(path, whole)
			}
		}
	})
	if !readable {
		return everything
	}
	return filter
}

// MayHave reports whether fields that match the pattern, or something that they are part of, may be owned.
func (f FieldFilter) MayHave(pattern Pattern) bool {
	for i, part := range pattern[:min(len(pattern), filterDepth)] {
		if part == anyItem || i > 0 && f.has(pattern[:i], whole) {
			return true
		}
		if !f.has(pattern[:i+1], "") {
			return false
		}
	}
	return true
}

func (f *FieldFilter) add(path Pattern, mark string) {
	word, bit := position(path, mark)
	f[word] |= bit
}

func (f *FieldFilter) has(path Pattern, mark string) bool {
	word, bit := position(path, mark)
	return f[word]&bit != 0
}

// position returns the bit of a path. Its hash is FNV-1a, computed without joining the parts: there is one for each field of each object
// that changes.
func position(path Pattern, mark string) (word, bit uint64) {
	const offset, prime = 14695981039346656037, 1099511628211
	sum := uint64(offset)
	write := func(text string) {
		for i := range len(text) {
			sum = (sum ^ uint64(text[i])) * prime
		}
	}
	for i, part := range path {
		if i > 0 {
			write("/")
		}
		write(part)
	}
	write(mark)
	return sum >> 62, 1 << (sum >> 32 % 64)
}

// owns reports whether a field is among those of FieldsV1. Fields that cannot be read have none.
func owns(fields []byte, field Pattern) bool {
	found := false
	walk(&scanner{rest: string(fields)}, nil, func(path Pattern, _ bool) {
		found = found || slices.Equal(path, field)
	})
	return found
}

// walk calls visit for every field of the JSON object that comes next, outside of lists, and reports whether all could be
// read. The path that visit gets is valid during the call only.
func walk(fields *scanner, path Pattern, visit func(path Pattern, isWhole bool)) bool {
	if fields.depth++; fields.depth > deepest || !fields.take('{') {
		return false
	}
	for first := true; !fields.take('}'); first = false {
		if !first && !fields.take(',') {
			return false
		}
		key, ok := fields.key()
		if !ok {
			return false
		}
		depth, inner := len(path), func(Pattern, bool) {} // "." and items of lists
		if name, isField := strings.CutPrefix(key, "f:"); isField {
			path, inner = append(path, name), visit
			visit(path, fields.empty())
		}
		if !walk(fields, path, inner) {
			return false
		}
		path = path[:depth]
	}
	fields.depth--
	return true
}

// deepest is how deep fields may be nested: far deeper than in any object that an API server takes, and not as deep as to use up the stack.
const deepest = 1000

// scanner reads the JSON of FieldsV1, which is made of objects alone.
type scanner struct {
	rest  string
	depth int
}

func (s *scanner) take(char byte) bool {
	s.rest = strings.TrimLeft(s.rest, " \t\r\n")
	if s.rest == "" || s.rest[0] != char {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// empty reports whether an empty object comes next.
func (s *scanner) empty() bool {
	ahead := *s
	return ahead.take('{') && ahead.take('}')
}

// escapesField reports whether a key has escapes and is, or may be, that of a field. Those of list items are full of escapes, and only their
// first character matters.
func escapesField(key string) bool {
	return strings.Contains(key, `\`) && (key[0] == '\\' || key[0] == 'f')
}

// key reads a key and the colon after it. Escapes stay in the keys of list items.
func (s *scanner) key() (string, bool) {
	if !s.take('"') {
		return "", false
	}
	for i := 0; i < len(s.rest); i++ {
		switch s.rest[i] {
		case '\\':
			i++
		case '"':
			key := s.rest[:i]
			if !utf8.ValidString(key) {
				return "", false // readers differ in what they make of it
			}
			s.rest = s.rest[i+1:]
			if escapesField(key) {
				var unescaped string // its own variable: the address of key would have each key allocated
				if json.Unmarshal([]byte(`"`+key+`"`), &unescaped) != nil {
					return "", false
				}
				return unescaped, s.take(':')
			}
			return key, s.take(':')
		}
	}
	return "", false
}
