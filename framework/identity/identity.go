package identity

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Form is the form of marks. It is the prefix of finalizers and hashes.
const Form = "v1"

// DefaultFramework is the name of a framework without a name, and of work without a framework.
const DefaultFramework = "operatorkit"

// finalizerDomain is the domain of finalizers, and manager is the first part of field managers.
const (
	finalizerDomain = "operatorkit.io"
	manager         = "operatorkit-" + Form
)

// maxFieldManager is the maximum length of a field manager at the API server.
const maxFieldManager = 128

// Identity is an owner: the name of an operator, and of one of its frameworks. The zero value owns
// nothing.
type Identity struct {
	Operator  string
	Framework string
	// FormerOperators and FormerFrameworks are earlier names of the operator and the framework.
	FormerOperators  []string
	FormerFrameworks []string
}

// String returns the names in the form of errors and events.
func (i Identity) String() string {
	return fmt.Sprintf("framework %q of operator %q", i.Framework, i.Operator)
}

// Finalizer returns the finalizer of the framework: "operatorkit.io/v1_", the operator, an
// underscore and the framework.
func (i Identity) Finalizer() string {
	return finalizerDomain + "/" + join(validation.LabelValueMaxLength, Form, i.Operator, i.Framework)
}

// FormerFinalizers returns the finalizers of the framework under its former names.
func (i Identity) FormerFinalizers() []string {
	var finalizers []string
	for _, former := range i.former() {
		finalizers = append(finalizers, former.Finalizer())
	}
	return finalizers
}

// Component returns the name of the framework as the source of events: the operator's name in the
// form of LeaseName, a slash, and the framework's name. It is a qualified name, as events.k8s.io
// requires.
func (i Identity) Component() string {
	own := i.Framework
	if len(validation.IsValidLabelValue(own)) > 0 || own == "" {
		own = shortened(validation.LabelValueMaxLength, own)
	}
	return LeaseName(i.Operator) + "/" + own
}

// LeaseName returns the name of an operator's lease, in Kubernetes and in a bucket of NATS. It is
// the operator's name unchanged if that is a DNS name. Otherwise the name is shortened, in lower
// case and followed by a hyphen and a hash.
func LeaseName(operator string) string {
	if len(validation.IsDNS1123Subdomain(operator)) == 0 {
		return operator
	}
	return shortened(validation.DNS1123SubdomainMaxLength, operator)
}

// shortened returns a name as a part of a DNS name of at most limit characters. It ends with a
// hyphen and a hash of the name.
func shortened(limit int, name string) string {
	part := strings.ToLower(strings.ReplaceAll(clean(name), ".", "-"))
	part = part[:min(limit-hashLength-1, len(part))]
	return strings.Trim(part+"-"+hash([]string{name})[:hashLength], "-")
}

// former returns the earlier identities: all pairs of a name of the operator and a name of the
// framework except the current pair.
func (i Identity) former() []Identity {
	var all []Identity
	for _, operator := range append([]string{i.Operator}, i.FormerOperators...) {
		for _, framework := range append([]string{i.Framework}, i.FormerFrameworks...) {
			if operator != i.Operator || framework != i.Framework {
				all = append(all, Identity{Operator: operator, Framework: framework})
			}
		}
	}
	return all
}

// Program returns the name of an operator without a name: the path of the program's main package,
// as the Go toolchain recorded it in the program, or else the name of its file.
var Program = sync.OnceValue(func() string {
	path := ""
	if build, ok := debug.ReadBuildInfo(); ok {
		path = build.Path
	}
	return cmp.Or(path, filepath.Base(os.Args[0]))
})

// Mark names the owner of a thing that a resource made.
type Mark struct{ Operator, Framework, Resource string }

// String returns the names in the form of errors and events.
func (m Mark) String() string {
	text := strconv.AppendQuote([]byte("resource "), m.Resource)
	text = strconv.AppendQuote(append(text, " of framework "...), m.Framework)
	return string(strconv.AppendQuote(append(text, " of operator "...), m.Operator))
}

// Hash returns a label value for finding things with this mark and the same parts: Form, a hyphen,
// and a hash of the mark and the parts. The value reveals neither.
func (m Mark) Hash(parts ...string) string {
	return Form + "-" + hash(append([]string{m.Operator, m.Framework, m.Resource}, parts...))[:24]
}

// FieldManager returns the name under which the resource applies fields: "operatorkit-v1_", the
// operator, the framework and the resource, with underscores between them.
func (m Mark) FieldManager() string {
	return join(maxFieldManager, manager, m.Operator, m.Framework, m.Resource)
}

// LabelValue returns a name as the value of a label.
func LabelValue(name string) string { return join(validation.LabelValueMaxLength, Form, name) }

// hashLength is the length of the hash after a shortened name.
const hashLength = 10

// join joins parts by underscores after prefix, within limit bytes. If the parts don't fit, or if
// one is empty or has characters that a label value can't have, they are cleaned and shortened, and
// followed by another underscore and a hash of all of them. No unchanged part has an underscore, so
// different parts never give the same result.
func join(limit int, prefix string, parts ...string) string {
	plain := prefix + "_" + strings.Join(parts, "_")
	unfit := func(part string) bool { return clean(part) != part || part == "" }
	if len(plain) <= limit && !slices.ContainsFunc(parts, unfit) {
		return plain
	}
	room := (limit - len(prefix) - 1 - hashLength - len(parts)) / len(parts)
	short := []string{prefix}
	for _, part := range parts {
		part = clean(part)
		short = append(short, clean(part[:min(room, len(part))]))
	}
	return strings.Join(short, "_") + "_" + hash(parts)[:hashLength]
}

// clean replaces underscores, and characters that a label value can't have, by hyphens. It trims
// the characters that can't be first or last in a label value.
func clean(part string) string {
	part = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-':
			return r
		}
		return '-'
	}, part)
	return strings.Trim(part, "-.")
}

func hash(parts []string) string {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{Form}, parts...), "\x00")))
	return hex.EncodeToString(sum[:])
}
