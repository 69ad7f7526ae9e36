package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// source is a Go file of a project.
type source struct {
	path    string
	content []byte
	files   *token.FileSet
	file    *ast.File
}

// readSource reads a file of the project in dir.
func readSource(dir, path string) (*source, error) {
	content, err := os.ReadFile(filepath.Join(dir, path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no %s here: run it in the folder of a project that \"operatorkit new\" has written", path)
	}
	if err != nil {
		return nil, err
	}
	return parse(path, content)
}

func parse(path string, content []byte) (*source, error) {
	s := &source{path: path, content: content, files: token.NewFileSet()}
	var err error
	if s.file, err = parser.ParseFile(s.files, path, content, parser.ParseComments); err != nil {
		return nil, fmt.Errorf("%s can't be understood: %w: mend it first", path, err)
	}
	return s, nil
}

func (s *source) offset(pos token.Pos) int { return s.files.Position(pos).Offset }

// text is the source of a node.
func (s *source) text(n ast.Node) string {
	return string(s.content[s.offset(n.Pos()):s.offset(n.End())])
}

// declared are the names that the file declares in its package.
func (s *source) declared() []string {
	var found []string
	for _, decl := range s.file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				found = append(found, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					found = append(found, spec.Name.Name)
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						found = append(found, name.Name)
					}
				}
			}
		}
	}
	return found
}

// readPackage reads the Go files of a folder of the project in dir.
func readPackage(dir, pkg string) ([]*source, error) {
	paths, err := filepath.Glob(filepath.Join(dir, pkg, "*.go"))
	if err != nil {
		return nil, err
	}
	var found []*source
	for _, path := range paths {
		s, err := readSource(dir, pkg+"/"+filepath.Base(path))
		if err != nil {
			return nil, err
		}
		found = append(found, s)
	}
	return found, nil
}

// value returns the value of a variable of the package, or nil.
func (s *source) value(variable string) ast.Expr {
	for _, decl := range s.file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.VAR {
			continue
		}
		for _, spec := range group.Specs {
			v := spec.(*ast.ValueSpec)
			for i, name := range v.Names {
				if name.Name == variable && i < len(v.Values) {
					return v.Values[i]
				}
			}
		}
	}
	return nil
}

// list returns the composite literal that is the value of a variable, or of a field of it ("v1.resources").
func (s *source) list(name string) (*ast.CompositeLit, error) {
	variable, field, inField := strings.Cut(name, ".")
	literal, ok := s.value(variable).(*ast.CompositeLit)
	if ok && inField {
		fields := literal.Elts
		literal, ok = nil, false
		for _, e := range fields {
			if pair, isPair := e.(*ast.KeyValueExpr); isPair && s.text(pair.Key) == field {
				literal, ok = pair.Value.(*ast.CompositeLit)
			}
		}
	}
	if !ok {
		return nil, fmt.Errorf("%s has no list %s any more that is written out as new writes it", s.path, name)
	}
	return literal, nil
}

// elements are the source of what is in a list.
func (s *source) elements(list *ast.CompositeLit) []string {
	var texts []string
	for _, e := range list.Elts {
		texts = append(texts, s.text(e))
	}
	return texts
}

// insert puts an element into a list: before the element of that text if it is the last one, or else at the end. Nothing else changes.
func (s *source) insert(name, element, before string) (*source, error) {
	list, err := s.list(name)
	if err != nil {
		return nil, fmt.Errorf("%w: nothing was written; add %s there yourself", err, element)
	}
	existing := s.elements(list)
	lines := func(a, b token.Pos) bool { return s.files.Position(a).Line != s.files.Position(b).Line }
	var at int
	var text string
	switch n := len(list.Elts); {
	case n == 0:
		at, text = s.offset(list.Lbrace)+1, element
	case existing[n-1] == before:
		last := list.Elts[n-1]
		at, text = s.offset(last.Pos()), element+", "
		if n > 1 && lines(list.Elts[n-2].End(), last.Pos()) || n == 1 && lines(list.Lbrace, last.Pos()) {
			text = element + ",\n"
		}
	default:
		end := list.Elts[n-1].End()
		if !lines(end, list.Rbrace) {
			rest := s.content[s.offset(end):s.offset(list.Rbrace)]
			at, text = s.offset(end), ", "+element
			if bytes.Contains(rest, []byte(",")) {
				at, text = at+bytes.IndexByte(rest, ',')+1, " "+element
			}
			break
		}
		at = s.offset(end) + bytes.IndexByte(s.content[s.offset(end):], '\n')
		text = "\n" + element + ","
	}
	return s.with(at, text)
}

// imports adds an import, if there is none of that path.
func (s *source) imports(path string) (*source, error) {
	var last *ast.ImportSpec
	for _, spec := range s.file.Imports {
		have, err := strconv.Unquote(spec.Path.Value)
		if err == nil && have == path {
			return s, nil
		}
		last = spec
	}
	if last == nil || s.files.Position(last.Pos()).Column == 1 {
		return s.with(s.offset(s.file.Name.End()), "\n\nimport "+strconv.Quote(path))
	}
	line := s.offset(last.End())
	if i := bytes.IndexByte(s.content[line:], '\n'); i >= 0 {
		line += i
	}
	if !strings.HasPrefix(lineBefore(s.content, s.offset(last.Pos())), "\t") {
		return s.with(s.offset(s.file.Name.End()), "\n\nimport "+strconv.Quote(path))
	}
	return s.with(line, "\n\t"+strconv.Quote(path))
}

// lineBefore is what stands on the line of an offset, up to it.
func lineBefore(content []byte, offset int) string {
	return string(content[bytes.LastIndexByte(content[:offset], '\n')+1 : offset])
}

// with returns the source with a text put in at an offset. It is formatted if it was before.
func (s *source) with(at int, text string) (*source, error) {
	content := []byte(string(s.content[:at]) + text + string(s.content[at:]))
	if was, err := format.Source(s.content); err == nil && bytes.Equal(was, s.content) {
		if content, err = format.Source(content); err != nil {
			return nil, fmt.Errorf("%s: %w", s.path, err)
		}
	}
	return parse(s.path, content)
}

// modulePath is the line of go.mod that names the module.
var modulePath = regexp.MustCompile(`(?m)^module\s+"?([^\s"]+)"?`)

// readProject returns the names of the project in dir.
func readProject(dir string) (*names, error) {
	content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	found := modulePath.FindSubmatch(content)
	if err != nil || found == nil {
		return nil, errors.New("there is no go.mod here that names a module: run it in the folder of a project that \"operatorkit new\" has written")
	}
	n := &names{Module: string(found[1])}
	n.Name = n.Module[strings.LastIndex(n.Module, "/")+1:]
	doc, err := readSource(dir, "api/v1alpha1/doc.go")
	if err != nil {
		return nil, err
	}
	group, ok := doc.value("GroupVersion").(*ast.CompositeLit)
	if ok {
		for _, e := range group.Elts {
			if pair, isPair := e.(*ast.KeyValueExpr); isPair && doc.text(pair.Key) == "Group" {
				n.Group, _ = strconv.Unquote(doc.text(pair.Value))
			}
		}
	}
	if n.Group == "" {
		return nil, errors.New(`api/v1alpha1/doc.go does not say the group any more by GroupVersion = schema.GroupVersion{Group: "…", …}: write it so`)
	}
	return n, nil
}

// kinds returns the kinds of the API, by the types in the list of doc.go.
func kinds(doc *source) ([]string, error) {
	list, err := doc.list("kinds")
	if err != nil {
		return nil, err
	}
	var found []string
	for _, text := range doc.elements(list) {
		kind := strings.TrimSuffix(strings.TrimPrefix(text, "&"), "{}")
		if !strings.HasSuffix(kind, "List") {
			found = append(found, kind)
		}
	}
	return found, nil
}
