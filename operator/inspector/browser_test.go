package inspector_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/operator/inspector"
)

// patience is how long a browser may take to show what is expected.
const patience = 30 * time.Second

// browser is a page in a headless Chromium.
type browser struct {
	t   testing.TB
	ctx context.Context
	url string
}

// open opens a page of the inspector in a browser of its own.
func (w *world) open(path string) *browser {
	w.t.Helper()
	t := w.t
	program := chromium(t)
	profile, err := os.MkdirTemp("", "inspector-chromium-")
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.UserDataDir(profile), chromedp.DisableGPU,
		// The sandbox takes privileges that containers mostly lack. All that is opened is our own.
		chromedp.NoSandbox)
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Logf("end the browser: %v", err)
		}
		cancel()
		stopAllocator()
		_ = os.RemoveAll(profile)
	})
	b := &browser{t: t, ctx: ctx, url: w.url + "/inspector/"}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1280, 900)); err != nil {
		t.Fatalf("start %s: %v", program, err)
	}
	// Without it, a page has the focus or not as the machine pleases, and is told of it or not.
	within(b, "have the focus", chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
		return err
	}))
	b.visit(path)
	return b
}

// chromium returns the path of the browser. Without one the test is skipped, but not where everything must be tested. With -short all
// tests are skipped but one.
func chromium(t testing.TB) string {
	t.Helper()
	if testing.Short() && t.Name() != "TestOverviewSearchObjectTimelineAndPlanInABrowser" {
		t.Skip("left to make test-all: it needs a real browser")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if program, err := exec.LookPath(name); err == nil {
			return program
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("there is no Chromium: install it, for example by apt-get install chromium")
	}
	t.Skip("there is no Chromium: install it, for example by apt-get install chromium, to test the inspector in a browser")
	return ""
}

// within runs an action that must end in time.
func within[T any](b *browser, what string, action chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	if err != nil {
		b.t.Fatalf("%s: %v\n%s", what, err, b.dump())
	}
	return value
}

func (b *browser) dump() string {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText`))
	if err != nil {
		return err.Error()
	}
	return text
}

func (b *browser) visit(path string) {
	b.t.Helper()
	within(b, "open "+path, chromedp.Navigate(b.url+path))
}

// eval returns the value of an expression.
func eval[T any](b *browser, expression string) T {
	b.t.Helper()
	return within(b, expression, chromedp.Evaluate[T](expression))
}

// until waits for an expression to be true. While the browser goes to another page the expression can't be evaluated.
func (b *browser) until(what, expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	for {
		holds, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression))
		if err == nil && holds {
			return
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			b.t.Fatalf("gave up waiting until %s: %v\n%s", what, err, b.dump())
		}
	}
}

// wait lets time pass in the page: for what must not happen there is nothing to wait for.
func (b *browser) wait(d time.Duration) {
	b.t.Helper()
	within(b, "let time pass", chromedp.Evaluate[bool](
		fmt.Sprintf("new Promise(done => setTimeout(() => done(true), %d))", d.Milliseconds()), chromedp.EvalAwaitPromise))
}

// shows waits until the text is to be seen.
func (b *browser) shows(text string) {
	b.t.Helper()
	b.until(fmt.Sprintf("%q is shown", text), fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// press presses keys, on what has the focus.
func (b *browser) press(keys string) {
	b.t.Helper()
	within(b, "press "+keys, chromedp.KeyEvent(keys))
}

// stay marks the page, so that a reload is noticed.
func (b *browser) stay() { eval[bool](b, "window.stayed = true") }

// stayed fails the test when the page was loaded again since stay.
func (b *browser) stayed() {
	b.t.Helper()
	if !eval[bool](b, "window.stayed === true") {
		b.t.Error("the page was loaded again")
	}
}

func TestOverviewSearchObjectTimelineAndPlanInABrowser(t *testing.T) {
	w := start(t, inspector.Config{}, []*corev1.ConfigMap{site("home", "index.html", "<h1>Hello</h1>"), site("shop"), site("broken", failsKey, "no space left")})
	w.reconciled(3)

	b := w.open("")
	b.shows("1 object fails")
	b.shows("no space left")
	b.shows(kind)

	b.press("/")
	if got := eval[string](b, "document.activeElement.id"); got != "find" {
		t.Errorf("after a slash the focus is on %q, want the search", got)
	}
	// The browser is told of the key and of its character apart, and writes the latter although the key was taken.
	eval[bool](b, "document.activeElement.select() || true")
	b.press("home\r")
	b.shows("1 to 1 of 1 objects")
	within(b, "follow the link", chromedp.Click(chromedp.CSS("tbody a")))
	b.shows("Last reconciliations")
	b.shows("default/home-page")
	b.shows("it was there at the start")
	if bars := eval[int](b, `document.querySelectorAll("#timeline rect").length`); bars < 4 {
		t.Errorf("the timeline has %d bars, want one for the resource and each of its steps", bars)
	}

	b.stay()
	eval[bool](b, `document.querySelector("#plan-form button").focus() || true`)
	b.press("\r")
	b.shows("0 to create, 0 to update, 0 to delete")
	b.stayed()
	if got := eval[string](b, "document.activeElement.id"); got != "plan-title" {
		t.Errorf("after the plan the focus is on %q, want its title", got)
	}
}

func TestUpdateArrivesWithoutAReload(t *testing.T) {
	w := start(t, inspector.Config{}, []*corev1.ConfigMap{site("home", "page", "one")})
	w.reconciled(1)

	b := w.open(objectPath("home"))
	b.stay()
	b.shows("Live")
	eval[bool](b, `document.querySelector(".record summary").focus() || true`)
	focused := eval[string](b, `document.activeElement.closest("article").id`)
	w.put(site("home", "page", "two"))
	b.until("the new reconciliation is shown", `document.querySelectorAll(".record").length == 2`)
	b.stayed()
	b.until("its change is shown", `document.querySelector(".record .update del").textContent.includes("one")`)
	if got := eval[string](b, `document.activeElement.closest("article").id`); got != focused {
		t.Errorf("the focus went from %q to %q", focused, got)
	}
	if open := eval[int](b, `document.querySelectorAll(".record > details[open]").length`); open != 2 {
		t.Errorf("%d reconciliations are open, want the new one and that which was open", open)
	}

	b.visit("")
	b.stay()
	b.shows("No object fails")
	w.put(site("home", failsKey, "out of paper"))
	b.shows("out of paper")
	b.stayed()
}

// hasNoForeignElements fails the test when a value has become an element: the policy would stop its script, but it must not
// come that far.
func (b *browser) hasNoForeignElements() {
	b.t.Helper()
	if got := eval[int](b, `document.querySelectorAll("main img, main script, header script, [onload], [onerror]").length`); got > 0 {
		b.t.Errorf("%d elements came from an object", got)
	}
}

func TestScriptInAnObjectDoesNotRun(t *testing.T) {
	const script = `"><img src=x onerror="window.pwned=1"><script>window.pwned=1</script><svg onload=window.pwned=1>`
	w := start(t, inspector.Config{Name: "operator" + script}, []*corev1.ConfigMap{
		site("page", "key"+script, script), site(script, "key", "value"),
		site("broken", failsKey, script), site("later"),
	})
	w.reconciled(4)

	b := w.open("")
	b.stay()
	for _, path := range []string{"", "objects", "objects?q=%3Cimg", objectPath("page"), objectPath(script), objectPath("broken")} {
		b.visit(path)
		b.shows(`onerror="window.pwned=1"`)
		b.hasNoForeignElements()
	}
	b.visit(objectPath("later"))
	w.put(site("later", "key", script))
	b.shows(`<script>window.pwned=1</script>`)
	b.hasNoForeignElements()
	b.visit(objectPath("page"))
	within(b, "plan", chromedp.Click(chromedp.CSS("#plan-form button")))
	b.shows("0 to create")
	b.hasNoForeignElements()
	b.wait(1500 * time.Millisecond)
	if eval[bool](b, "window.pwned === 1") {
		t.Error("a script of an object ran")
	}
	// Even if something got through, the policy stops it.
	eval[bool](b, `document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.pwned=1'>") || true`)
	b.wait(500 * time.Millisecond)
	if eval[bool](b, "window.pwned === 1") {
		t.Error("an inline handler ran: the Content-Security-Policy is too weak")
	}
}

func TestTenThousandObjectsInABrowser(t *testing.T) {
	sites := make([]*corev1.ConfigMap, 10_000)
	for i := range sites {
		sites[i] = site(fmt.Sprintf("site-%05d", i))
	}
	w := start(t, inspector.Config{}, sites)
	w.reconciled(10_000)

	b := w.open("objects")
	b.shows("1 to 50 of 10\u202f000 objects")
	within(b, "go on", chromedp.Click(chromedp.CSS("a[rel=next]")))
	b.shows("51 to 100 of 10\u202f000 objects")
	b.shows("default/site-00050")
	b.visit("objects?q=site-09999")
	b.shows("1 to 1 of 1 objects")
	b.shows("default/site-09999")
}

func TestPageIsReadableOnAPhone(t *testing.T) {
	w := start(t, inspector.Config{}, []*corev1.ConfigMap{site("home", "a-rather-long-key.with.dots", strings.Repeat("long", 100)), site("broken", failsKey, strings.Repeat("failure", 50))})
	w.reconciled(2)
	b := w.open("")
	within(b, "narrow", chromedp.EmulateViewport(360, 740))
	for _, path := range []string{"", "objects", objectPath("home"), objectPath("broken")} {
		b.visit(path)
		if wide := eval[int](b, "document.documentElement.scrollWidth"); wide > 360 {
			t.Errorf("%q is %d pixels wide on a screen of 360", path, wide)
		}
	}
}
