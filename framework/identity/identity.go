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

// Form is the form that marks have. It begins finalizers and hashes.
const Form = "v1"

// DefaultFramework is the name of a framework that is given none, and of what runs without a framework.
const DefaultFramework = "operatorkit"

// The domain of finalizers, and the first part of field managers.
const (
	finalizerDomain = "operatorkit.io"
	manager         = "operatorkit-" + Form
)

// maxFieldManager is how long the API server lets a field manager be.
const maxFieldManager = 128

// Identity is whose a thing is: the name of an operator, and of one of its frameworks. The zero value is nobody's.
type Identity struct {
	Operator  string
	Framework string
	// FormerOperators and FormerFrameworks are the names that the operator and the framework had before.
	FormerOperators  []string
	FormerFrameworks []string
}

// String returns the names as they stand in errors and events.
func (i Identity) String() string {
	return fmt.Sprintf("framework %q of operator %q", i.Framework, i.Operator)
}

// Finalizer returns the finalizer of the framework: "operatorkit.io/v1_", the operator, an underscore and the framework.
func (i Identity) Finalizer() string {
	return finalizerDomain + "/" + join(validation.LabelValueMaxLength, Form, i.Operator, i.Framework)
}

// FormerFinalizers returns the finalizers that the framework had under its former names.
func (i Identity) FormerFinalizers() []string {
	var finalizers []string
	for _, former := range i.former() {
		finalizers = append(finalizers, former.Finalizer())
	}
	return finalizers
}

// Component returns the name of the framework as the source of events: that of the operator, as LeaseName makes it, a slash, and
// its own. It is a qualified name, as events.k8s.io wants it.
func (i Identity) Component() string {
	own := i.Framework
	if len(validation.IsValidLabelValue(own)) > 0 || own == "" {
		own = shortened(validation.LabelValueMaxLength, own)
	}
	return LeaseName(i.Operator) + "/" + own
}

// LeaseName returns the name of an operator as that of its lease, in Kubernetes and in a bucket of NATS: as it is if it is a DNS
// name, and else shortened, in lower case and followed by a hyphen and a hash.
func LeaseName(operator string) string {
	if len(validation.IsDNS1123Subdomain(operator)) == 0 {
		return operator
	}
	return shortened(validation.DNS1123SubdomainMaxLength, operator)
}

// shortened returns a name as one part of a DNS name that can be as long as limit, and ends with a hyphen and a hash of the name.
func shortened(limit int, name string) string {
	part := strings.ToLower(strings.ReplaceAll(clean(name), ".", "-"))
	part = part[:min(limit-hashLength-1, len(part))]
	return strings.Trim(part+"-"+hash([]string{name})[:hashLength], "-")
}

// former returns what the identity was before: all pairs of a name of the operator and one of the framework, but for the one
// it has now.
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

// Program returns the name of an operator that is given none: the path of the program's main package, as the Go toolchain
// wrote it into the program, or else the name of its file.
var Program = sync.OnceValue(func() string {
	path := ""
	if build, ok := debug.ReadBuildInfo(); ok {
		path = build.Path
	}
	return cmp.Or(path, filepath.Base(os.Args[0]))
})

// Mark is whose a thing is that a resource made.
type Mark struct{ Operator, Framework, Resource string }

// String returns the names as they stand in errors and events.
func (m Mark) String() string {
	text := strconv.AppendQuote([]byte("resource "), m.Resource)
	text = strconv.AppendQuote(append(text, " of framework "...), m.Framework)
	return string(strconv.AppendQuote(append(text, " of operator "...), m.Operator))
}

// Hash returns a value for a label by which things of this mark are found that concern the same: Form, a hyphen, and a hash of
// the mark and the parts. Nothing can be learned from it.
func (m Mark) Hash(parts ...string) string {
	return Form + "-" + hash(append([]string{m.Operator, m.Framework, m.Resource}, parts...))[:24]
}

// FieldManager returns the name under which the resource applies fields: "operatorkit-v1_", the operator, the framework and the
// resource, with underscores between them.
func (m Mark) FieldManager() string {
	return join(maxFieldManager, manager, m.Operator, m.Framework, m.Resource)
}

// LabelValue returns a name as the value of a label.
func LabelValue(name string) string { return join(validation.LabelValueMaxLength, Form, name) }

// hashLength is how many characters of a hash follow names that were shortened.
const hashLength = 10

// join joins parts by underscores after prefix, within limit bytes. Parts that don't fit, or have characters of which a label's
// value can't be made, are shortened and replaced, and followed by another underscore and a hash of all of them. No part that
// stands as it is has an underscore, so different parts never give the same.
func join(limit int, prefix string, parts ...string) string {
	plain := prefix + "_" + strings.Join(parts, "_")
	if len(plain) <= limit && !slices.ContainsFunc(parts, func(part string) bool { return clean(part) != part || part == "" }) {
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

// clean replaces the characters that a label's value can't have, and underscores, by hyphens, and takes off what it can't begin
// or end with.
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
