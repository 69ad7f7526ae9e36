package operatorkit_test

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operatorkit/operatorkit/operator"
)

// notWaitedFor are the times of an hour and more that no worker is in a step for, by the folder and the name of what they are the value of.
var notWaitedFor = map[string]string{
	"framework maxFightPause":                                             "is a pause between two reconciliations",
	"framework maxSuggestedPause":                                         "is a pause between two reconciliations",
	"operator DefaultStepTimeout":                                         "is the time itself",
	"operator/serviceprovider/clusteraccess/granter DefaultMaxLifetime":   "is the life of a credential",
	"operator/serviceprovider/clusteraccess/granter DefaultTokenLifetime": "is the life of a credential",
	"operator/serviceprovider rowLasts":                                   "is when vanished objects begin a new row",
	"resource/deployment/api MaxWait":                                     "is a wait on purpose (framework.BeginWait)",
	"resource/statemanager/native/fetch abandoned":                        "is when a file counts as left behind",
	"resource/statemanager/target warnedAgain":                            "is how seldom a warning is repeated",
	"resource/statemanager/window longest":                                "is how long a window may be",
}

// TestR17HealthzFailsLaterThanAnyTimeOutThatIsShipped reads every time in the source of what operators are made of: one that is as long as a
// worker may be in a step has to say why nothing waits that long inside one.
func TestR17HealthzFailsLaterThanAnyTimeOutThatIsShipped(t *testing.T) {
	read, explained := 0, map[string]bool{}
	for _, root := range []string{"context", "framework", "informer", "internal", "operator", "resource"} {
		for _, f := range shippedFiles(t, root) {
			for _, d := range durationsOf(t, f) {
				read++
				name := filepath.ToSlash(filepath.Dir(f)) + " " + d.of
				_, ok := notWaitedFor[name]
				explained[name] = explained[name] || ok
				if !ok && d.value >= operator.DefaultStepTimeout {
					t.Errorf("%s is %s, and /healthz fails when a worker was in a step for %s", name, d.value, operator.DefaultStepTimeout)
				}
			}
		}
	}
	if read < 100 {
		t.Errorf("only %d times were read", read)
	}
	for name := range notWaitedFor {
		if !explained[name] {
			t.Errorf("there is no time %s any more", name)
		}
	}
}

// shippedFiles are the Go files below a folder that operators are made of: no tests, nor what is for tests.
func shippedFiles(t *testing.T, root string) (files []string) {
	t.Helper()
	forTests := []string{"testdata", "operatortest", "bench", "charttest", "commandtest"}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (slices.Contains(forTests, entry.Name()) || strings.HasSuffix(entry.Name(), "test")):
			return fs.SkipDir
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// duration is a time in the source, and the name of what it is a value of: a constant, a variable, a field or a function.
type duration struct {
	of    string
	value time.Duration
}

// durationsOf are the times in a file that are made of the units of package time: 5*time.Minute, time.Hour.
func durationsOf(t *testing.T, path string) (found []duration) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var names []string // of what is around a node, "" where it has none
	ast.Inspect(file, func(node ast.Node) bool {
		if node == nil {
			names = names[:len(names)-1]
			return true
		}
		if value, ok := valueOf(node); ok {
			around := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "" })
			found = append(found, duration{append([]string{""}, around...)[len(around)], value})
			return false
		}
		if b, ok := node.(*ast.BinaryExpr); ok && slices.Contains([]token.Token{token.QUO, token.REM, token.LSS, token.GTR, token.LEQ, token.GEQ}, b.Op) {
			return false // it says how long something is
		}
		names = append(names, nameOf(node))
		return true
	})
	return found
}

// nameOf is the name that a node gives to the values in it.
func nameOf(node ast.Node) string {
	switch n := node.(type) {
	case *ast.FuncDecl:
		return n.Name.Name
	case *ast.ValueSpec:
		return n.Names[0].Name
	case *ast.KeyValueExpr:
		if name, ok := n.Key.(*ast.Ident); ok {
			return name.Name
		}
	}
	return ""
}

// valueOf returns what an expression is worth, if it has a unit of time and is constant.
func valueOf(node ast.Node) (time.Duration, bool) {
	switch node.(type) {
	case *ast.BinaryExpr, *ast.ParenExpr, *ast.SelectorExpr:
	default:
		return 0, false
	}
	text := types.ExprString(node.(ast.Expr))
	units := strings.NewReplacer("time.Nanosecond", "1", "time.Microsecond", "1e3", "time.Millisecond", "1e6", "time.Second", "1e9",
		"time.Minute", "60e9", "time.Hour", "3600e9")
	inNanoseconds := units.Replace(text)
	if inNanoseconds == text {
		return 0, false
	}
	value, err := types.Eval(token.NewFileSet(), nil, token.NoPos, inNanoseconds)
	if err != nil || value.Value == nil {
		return 0, false
	}
	nanoseconds, exact := constant.Int64Val(constant.ToInt(value.Value))
	return time.Duration(nanoseconds), exact
}
